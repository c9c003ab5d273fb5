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
use serde::Serialize;

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

impl Kind {
    /// Returns whether a column of this kind accepts a cell.
    fn accepts(self, cell: Cell) -> bool {
        match cell {
            Cell::Null => true,
            Cell::Bool(_) => self == Self::Bool,
            Cell::U64(_) => matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64),
            Cell::I64(_) => self == Self::I64,
            Cell::Text(_) => self == Self::Text,
        }
    }
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

    /// Returns a column that a kernel, or a lost packet, may leave empty.
    pub const fn optional(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: true, late: false }
    }

    /// Returns a column that a later version added. A stream in which it is empty lacks the column, as before.
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

/// A value for a column. Every unsigned column takes `U64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
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

/// Rows of cells in order of arrival. They are converted to columns in blocks, since a table may have a hundred
/// columns, each in a different part of memory.
pub struct Block {
    kinds: Vec<Kind>,
    /// The cells row by row: bits of numbers, positions in `texts`.
    cells: Vec<u64>,
    /// A bitmap of null cells for each row.
    nulls: Vec<u128>,
    texts: String,
}

impl Block {
    /// The processor's first cache holds this number of rows of the widest table.
    pub const ROWS: usize = 32;

    pub fn new(columns: &[Column]) -> Self {
        assert!(columns.len() <= 128, "a bit for each column");
        let kinds = columns.iter().map(|column| column.kind).collect();
        Self { kinds, cells: Vec::new(), nulls: Vec::new(), texts: String::new() }
    }

    pub fn rows(&self) -> usize {
        self.nulls.len()
    }

    pub fn push<'a>(&mut self, row: impl IntoIterator<Item = Cell<'a>>) {
        let start = self.cells.len();
        self.cells.resize(start + self.kinds.len(), 0);
        let mut slots = self.cells[start..].iter_mut().zip(&self.kinds);
        let (mut nulls, mut bit) = (0, 1u128);
        // `for_each`, not a loop: a chain of iterators checks at each `next` which of its parts is the current one
        row.into_iter().for_each(|cell| {
            let (slot, kind) = slots.next().expect("a row has a column for each cell");
            debug_assert!(kind.accepts(cell), "{cell:?} is of another kind than its column, {kind:?}");
            match cell {
                Cell::Null => nulls |= bit,
                Cell::Bool(value) => *slot = value.into(),
                Cell::U64(value) => *slot = value,
                Cell::I64(value) => *slot = u64::from_ne_bytes(value.to_ne_bytes()),
                Cell::Text(text) => *slot = append_text(&mut self.texts, text),
            }
            bit <<= 1;
        });
        assert!(slots.next().is_none(), "a row has a cell for each column");
        self.nulls.push(nulls);
    }

    /// Appends the cells to their columns; leaves the block empty.
    pub fn spread(&mut self, columns: &mut [Buffer]) {
        for (index, column) in columns.iter_mut().enumerate() {
            match column {
                Buffer::Bool(builder) => {
                    self.column(index).for_each(|value| builder.append_option(value.map(|value| value != 0)));
                }
                Buffer::U8(builder) => self.narrow(index, builder),
                Buffer::U16(builder) => self.narrow(index, builder),
                Buffer::U32(builder) => self.narrow(index, builder),
                Buffer::U64(builder) => self.append(index, builder, |value| value),
                Buffer::I64(builder) => {
                    self.append(index, builder, |value| i64::from_ne_bytes(value.to_ne_bytes()));
                }
                Buffer::Text(builder) => {
                    self.column(index)
                        .for_each(|range| builder.append_option(range.map(|range| self.text(range))));
                }
            }
        }
        self.cells.clear();
        self.nulls.clear();
        self.texts.clear();
    }

    fn text(&self, range: u64) -> &str {
        let half = |half| usize::try_from(half).expect("is of 32 bits");
        &self.texts[half(range >> 32)..][..half(range & u64::from(u32::MAX))]
    }

    fn column(&self, index: usize) -> impl Iterator<Item = Option<u64>> + '_ {
        let cells = self.cells.iter().skip(index).step_by(self.kinds.len());
        cells.zip(&self.nulls).map(move |(value, nulls)| (nulls >> index & 1 == 0).then_some(*value))
    }

    /// A value wider than its column is a bug in this program: kinds are copied from the kernel's structures.
    fn narrow<T: ArrowPrimitiveType>(&self, index: usize, builder: &mut PrimitiveBuilder<T>)
    where
        T::Native: TryFrom<u64>,
    {
        self.append(index, builder, |value| {
            let Ok(value) = T::Native::try_from(value) else { panic!("{value} does not fit its column") };
            value
        });
    }

    fn append<T: ArrowPrimitiveType>(
        &self,
        index: usize,
        builder: &mut PrimitiveBuilder<T>,
        convert: impl Fn(u64) -> T::Native,
    ) {
        let nulls = self.nulls.iter().filter(|nulls| *nulls >> index & 1 != 0).count();
        if nulls == self.rows() {
            builder.append_nulls(nulls);
        } else if nulls == 0 {
            let mut values = [T::Native::default(); Self::ROWS];
            let cells = self.cells.iter().skip(index).step_by(self.kinds.len());
            values.iter_mut().zip(cells).for_each(|(value, cell)| *value = convert(*cell));
            builder.append_slice(&values[..self.rows()]);
        } else {
            self.column(index).for_each(|value| builder.append_option(value.map(&convert)));
        }
    }
}

/// Appends `text` to `texts`; returns its start and its length, half of the bits each.
#[inline(never)]
fn append_text(texts: &mut String, text: &str) -> u64 {
    let half = |length| u64::from(u32::try_from(length).expect("texts are short"));
    let range = half(texts.len()) << 32 | half(text.len());
    texts.push_str(text);
    range
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

    /// Returns the collected cells; leaves the buffer empty.
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
