/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fields of a structure that your own code exports. Names and values are those of the structure.
 * Fields are integers and no bit fields.
 */
#ifndef _HOURGLASS_COLUMN_H
#define _HOURGLASS_COLUMN_H

#include <linux/build_bug.h>
#include <linux/overflow.h>
#include <linux/stddef.h>
#include <linux/types.h>

#define HOURGLASS_COLUMN_NAME 32

struct hourglass_column {
	const char *name;
	u16 offset;
	u8 size;
	bool is_signed;
};

#define HOURGLASS_COLUMN(type, field)						\
	{									\
		.name = #field + BUILD_BUG_ON_ZERO(sizeof(#field) > HOURGLASS_COLUMN_NAME), \
		.offset = offsetof(type, field),				\
		.size = sizeof(((type *)NULL)->field) +				\
			BUILD_BUG_ON_ZERO(sizeof(((type *)NULL)->field) > sizeof(u64)), \
		.is_signed = is_signed_type(typeof(((type *)NULL)->field)),	\
	}

static inline s64 hourglass_column_value(const void *of, const struct hourglass_column *column)
{
	const void *at = of + column->offset;

	switch (column->size) {
	case 1:
		return column->is_signed ? *(const s8 *)at : *(const u8 *)at;
	case 2:
		return column->is_signed ? *(const s16 *)at : *(const u16 *)at;
	case 4:
		return column->is_signed ? *(const s32 *)at : *(const u32 *)at;
	default:
		return *(const s64 *)at;
	}
}

#endif
