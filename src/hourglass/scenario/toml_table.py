# SPDX-License-Identifier: Apache-2.0
"""The base of all tables of a scenario: unknown keys are refused, values are immutable."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

Row = TypeVar("Row", bound="TomlTable")


class TomlTable(BaseModel):
    """One TOML table."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True, allow_inf_nan=False)


def _rows(value: object) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of tables")
    return tuple(value)


Rows = Annotated[tuple[Row, ...], BeforeValidator(_rows)]
"""A list of tables, `[[like.this]]`."""
