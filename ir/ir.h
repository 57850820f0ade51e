/* SPDX-License-Identifier: Apache-2.0 */
/* ir.h: the graph as the rest of weft sees it. The headers are one idea each, in reading order.
 *
 * A graph is a list of nodes in order of execution. A node applies one op to values and defines values; parameters
 * are values without a node. Everything is an id into arrays that live in the root graph's arena; ids are never
 * reused, so a side array indexed by id stays right while a pass edits. Shape is apart from layout: a value's type
 * says what it is, its layout says how it is stored. Nothing here is freed one by one. */
#ifndef WEFT_IR_H
#define WEFT_IR_H

#include "ir/base.h"     /* contexts, arenas, messages, constants' bytes, dtypes */
#include "ir/dims.h"     /* extents as expressions */
#include "ir/layout.h"   /* allocation domains */
#include "ir/ops.h"      /* the tables of ops and attributes */
#include "ir/graph.h"    /* values, nodes, uses */
#include "ir/index.h"    /* which elements are computed from which */
#include "ir/build.h"    /* inference, builders, edits */
#include "ir/text.h"     /* parse, print, validate */
#include "ir/tensor.h"   /* tensors with concrete extents */
#include "ir/sizes.h"    /* the values of symbols at a run */

#endif
