# SPDX-License-Identifier: Apache-2.0
"""The commands of `hourglass kernel` that need no kernel."""

from hourglass.builders.kernel import hooks


def test_check_hooks_prints_each_edit_that_does_not_apply_and_exits_with_1(call, tmp_path, monkeypatch):
    (tmp_path / "hooks").mkdir()
    hook = 'name = "x"\nwhy = "w"\n[[edit]]\nfile = "a.c"\nanchor = "{}"\nplace = "after"\ntext = ""\n'
    (tmp_path / "Makefile").write_text("VERSION = 7\nPATCHLEVEL = 4\n")
    (tmp_path / "a.c").write_text("one\n")
    loaded = hooks.load
    monkeypatch.setattr(hooks, "load", lambda folder: loaded(tmp_path / "hooks"))
    (tmp_path / "hooks/x.toml").write_text(hook.format("one"))
    assert call("kernel", "check-hooks", tmp_path) == (0, "all hooks apply to Linux 7.4.0\n", "")
    (tmp_path / "hooks/x.toml").write_text(hook.format("two"))
    line = 'a.c: x: "two" matches 0 times in Linux 7.4, must match 1\n'
    assert call("kernel", "check-hooks", tmp_path) == (1, line, "")


def test_check_hooks_refuses_a_folder_that_is_no_kernel(call, tmp_path):
    status, _, err = call("kernel", "check-hooks", tmp_path)
    assert (status, "is not a Linux source tree" in err) == (2, True)
