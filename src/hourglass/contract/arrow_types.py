# SPDX-License-Identifier: Apache-2.0
"""The types of Arrow's files for the declared types of columns."""

import pyarrow as pa

ARROW = {
    "bool": pa.bool_(), "u8": pa.uint8(), "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64(),
    "i64": pa.int64(), "text": pa.string(),
}  # fmt: skip
"""The type in a file of a column's declared type."""
