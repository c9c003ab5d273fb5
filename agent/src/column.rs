// SPDX-License-Identifier: Apache-2.0
//! One column of a table: its declaration, a cell of it, and the buffer that collects cells for Arrow.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Int64Builder, PrimitiveBuilder, StringBuilder, UInt16Builder,
    UInt32Builder, UInt64Builder, UInt8Builder,
};
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I64,
    Text,
}

#[derive(Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    kind: Kind,
    nullable: bool,
    late: bool,
}

impl Column {
    pub const fn of(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: false, late: false }
    }

    /// A column that a kernel, or a lost packet, may leave empty.
    pub const fn optional(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: true, late: false }
    }

    /// One that came later: a stream in which it is empty has no such column, as before it came.
    pub const fn late(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: true, late: true }
    }

    pub fn is_late(&self) -> bool {
        self.late
    }

    pub fn field(&self) -> Field {
        let data_type = match self.kind {
            Kind::Bool => DataType::Boolean,
            Kind::U8 => DataType::UInt8,
            Kind::U16 => DataType::UInt16,
            Kind::U32 => DataType::UInt32,
            Kind::U64 => DataType::UInt64,
            Kind::I64 => DataType::Int64,
            Kind::Text => DataType::Utf8,
        };
        Field::new(self.name, data_type, self.nullable)
    }
}

/// A value on its way into a column. Every unsigned column takes `U64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    Null,
    Bool(bool),
    U64(u64),
    I64(i64),
    Text(&'a str),
}

impl From<Option<u64>> for Cell<'_> {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::Null, Self::U64)
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(value: Option<i64>) -> Self {
        value.map_or(Self::Null, Self::I64)
    }
}

pub enum Buffer {
    Bool(BooleanBuilder),
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    I64(Int64Builder),
    Text(StringBuilder),
}

/// A value wider than its column is a bug in this program: kinds are copied from the kernel's structures.
fn narrow<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>, value: u64)
where
    T::Native: TryFrom<u64>,
{
    let Ok(value) = T::Native::try_from(value) else { panic!("{value} does not fit its column") };
    builder.append_value(value);
}

impl Buffer {
    pub fn new(column: &Column) -> Self {
        match column.kind {
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::U8 => Self::U8(UInt8Builder::new()),
            Kind::U16 => Self::U16(UInt16Builder::new()),
            Kind::U32 => Self::U32(UInt32Builder::new()),
            Kind::U64 => Self::U64(UInt64Builder::new()),
            Kind::I64 => Self::I64(Int64Builder::new()),
            Kind::Text => Self::Text(StringBuilder::new()),
        }
    }

    pub fn push(&mut self, cell: Cell) {
        match (self, cell) {
            (Self::Bool(builder), Cell::Bool(value)) => builder.append_value(value),
            (Self::U8(builder), Cell::U64(value)) => narrow(builder, value),
            (Self::U16(builder), Cell::U64(value)) => narrow(builder, value),
            (Self::U32(builder), Cell::U64(value)) => narrow(builder, value),
            (Self::U64(builder), Cell::U64(value)) => builder.append_value(value),
            (Self::I64(builder), Cell::I64(value)) => builder.append_value(value),
            (Self::Text(builder), Cell::Text(value)) => builder.append_value(value),
            (Self::Bool(builder), Cell::Null) => builder.append_null(),
            (Self::U8(builder), Cell::Null) => builder.append_null(),
            (Self::U16(builder), Cell::Null) => builder.append_null(),
            (Self::U32(builder), Cell::Null) => builder.append_null(),
            (Self::U64(builder), Cell::Null) => builder.append_null(),
            (Self::I64(builder), Cell::Null) => builder.append_null(),
            (Self::Text(builder), Cell::Null) => builder.append_null(),
            (_, cell) => panic!("{cell:?} is of another kind than its column"),
        }
    }

    /// The collected cells; leaves the buffer empty.
    pub fn take(&mut self) -> ArrayRef {
        fn finish(builder: &mut impl ArrayBuilder) -> ArrayRef {
            builder.finish()
        }
        match self {
            Self::Bool(builder) => finish(builder),
            Self::U8(builder) => finish(builder),
            Self::U16(builder) => finish(builder),
            Self::U32(builder) => finish(builder),
            Self::U64(builder) => finish(builder),
            Self::I64(builder) => finish(builder),
            Self::Text(builder) => Arc::new(builder.finish()),
        }
    }
}
