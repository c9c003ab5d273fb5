// SPDX-License-Identifier: Apache-2.0
// Let the keyboard scroll what is wider than the page: a listing or a table that overflows becomes a tab stop.
function markOverflow() {
  for (const box of document.querySelectorAll("article pre, article .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
addEventListener("load", markOverflow);
addEventListener("resize", markOverflow);
