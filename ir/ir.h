/* SPDX-License-Identifier: Apache-2.0 */
/* ir.h: the graph as the rest of weft sees it. One section per .c file of this folder, in reading order.
 *
 * A graph is a list of nodes in order of execution. A node applies one op to values and defines values; parameters
 * are values without a node. Everything is an id into arrays that live in the root graph's arena; ids are never
 * reused, so a side array indexed by id stays right while a pass edits. Shape is apart from layout: a value's type
 * says what it is, its layout says how it is stored. Nothing here is freed one by one. */
#ifndef WEFT_IR_H
#define WEFT_IR_H

#include "weft/weft.h"

#include <setjmp.h>
#include <stdarg.h>

#define WEFT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define WEFT_MAX_STORAGE 16

/* --- base.c: context, protected calls, arena, vectors, strings, diagnostics --------------------------------------- */

/* Broken invariants stop the process in builds with assertions, which all tests use; never wrong input. */
#ifdef NDEBUG
#define weft_assert(condition) ((void)sizeof(condition))
#else
#define weft_assert(condition) ((condition) ? (void)0 : weft_assert_failed(#condition, __FILE__, __LINE__))
#endif
_Noreturn void weft_assert_failed(const char *condition, const char *file, int line);

struct weft_arena;

struct weft_target {
    uint32_t cpu;        /* WEFT_CPU_* of kernels/kernels.h: what kernels may use */
    int32_t threads;
    size_t l1, l2, l3;   /* bytes of data cache: per core, per core, shared */
    char name[64];       /* "avx512+bf16 2 threads", for messages */
};

struct weft_text {       /* a growing text, always NUL-terminated when length > 0 */
    struct weft_context *context;
    struct weft_arena *arena; /* where it grows; NULL: in the allocator's memory, until weft_text_close */
    char *data;
    size_t length, capacity;
};

struct weft_context {
    struct weft_allocator allocator;
    struct weft_executor executor;
    void (*diagnose)(void *user, const struct weft_diagnostic *);
    void *diagnose_user;
    struct weft_target target;
    _Atomic bool gang_busy;  /* a run has the executor's workers; another gets one */
    jmp_buf *on_nomem;       /* the innermost protected call; NULL outside */
    struct weft_text errors; /* of the last failing call */
    int32_t error_count;     /* errors since the protected call began */
    int32_t error_status;    /* status of the first of them */
};

/* Runs fn(arg) so that an allocation that fails in an arena ends it with WEFT_ERR_NOMEM. The first protected call on
 * the stack clears the errors; when it has collected any and fn returned WEFT_OK, it returns the first error's
 * status. Nested calls just run fn. Every public function of the compile phase goes through here. */
int weft_protected(struct weft_context *context, int (*fn)(void *arg), void *arg);
/* The same for a call on a graph; the outermost call empties the scratch arena, where one that ran out of memory may
 * have left something. */
int weft_protected_graph(const struct weft_graph *graph, int (*fn)(void *arg), void *arg);
_Noreturn void weft_out_of_memory(struct weft_context *context);

/* Copies a caller's struct, which begins with its size, into `own`, zero where the caller's is older and shorter. False
 * if the size was not set. */
bool weft_take_options(void *own, size_t bytes, const void *given);

void *weft_allocate(struct weft_context *context, size_t bytes); /* 64-byte aligned; NULL on failure; any thread */
void weft_release(struct weft_context *context, void *memory, size_t bytes);

/* Memory that lives and dies together. weft_new never returns NULL: see weft_protected. Zeroed. */
struct weft_arena {
    struct weft_context *context;
    struct weft_chunk *chunk;
    size_t used, capacity; /* of the current chunk */
    size_t total;          /* bytes taken from the allocator */
};
void weft_arena_open(struct weft_arena *arena, struct weft_context *context);
void weft_arena_close(struct weft_arena *arena);
void *weft_arena_new(struct weft_arena *arena, size_t bytes);
#define weft_new(arena, type, count) ((type *)weft_arena_new((arena), sizeof(type) * (size_t)(count)))
char *weft_arena_copy(struct weft_arena *arena, const char *text, size_t length); /* NUL-terminated */
char *weft_arena_format(struct weft_arena *arena, const char *format, ...) WEFT_PRINTF(2, 3);

/* weft_grow(arena, &array, &capacity, need, sizeof element): the array holds at least `need` elements afterwards, new
 * ones zeroed. The old copy stays behind in the arena. */
void *weft_grow(struct weft_arena *arena, void *array, uint32_t *capacity, uint32_t need, size_t element);

void weft_text_add(struct weft_text *text, const char *string);
void weft_text_addn(struct weft_text *text, const char *string, size_t length);
void weft_text_format(struct weft_text *text, const char *format, ...) WEFT_PRINTF(2, 3);
void weft_text_close(struct weft_text *text);
char *weft_text_take(const struct weft_text *text); /* a copy that weft_free_text releases; NULL if memory is refused */

/* Where a message points. All members may be empty. */
struct weft_place {
    const char *file;
    int32_t line, column;
    const char *where;
};
/* Records an error (or a note) with the status that the call will return. */
void weft_error(struct weft_context *context, int status, const struct weft_place *place, const char *format, ...)
    WEFT_PRINTF(4, 5);
void weft_note(struct weft_context *context, int severity, const struct weft_place *place, const char *format, ...)
    WEFT_PRINTF(4, 5);

/* --- blob.c: bytes of constants, shared between a graph and its clones -------------------------------------------- */

/* Counted memory: allocated, or a part of a mapped file. Reference counts are atomic. */
struct weft_blob {
    struct weft_context *context;
    void *data;
    size_t bytes;
    bool mapped;
    _Atomic int32_t references;
    char *path; /* of the mapped file, else NULL; owned by the blob */
};
/* NULL and WEFT_ERR_NOMEM on failure; zeroed, 64-byte aligned. */
struct weft_blob *weft_blob_new(struct weft_context *context, size_t bytes);
/* Maps a whole file, read-only; on failure records an error that names the file and returns NULL. */
struct weft_blob *weft_blob_map(struct weft_context *context, const char *path);
/* Gives back the whole pages within a part of a mapped file; they are read again if somebody looks. */
void weft_blob_forget(struct weft_blob *blob, uint64_t offset, size_t bytes);
struct weft_blob *weft_blob_hold(struct weft_blob *blob);
void weft_blob_drop(struct weft_blob *blob);

/* --- dtype.c ------------------------------------------------------------------------------------------------------ */

bool weft_dtype_is_float(int dtype);
bool weft_dtype_is_int(int dtype);     /* signed or unsigned, not bool */
bool weft_dtype_is_signed(int dtype);  /* signed integers */
bool weft_dtype_is_storage_only(int dtype);
/* Element i of a packed array: as double for floats, exact for integers. Unaligned data is fine. */
double weft_load_real(int dtype, const void *data, int64_t i);
int64_t weft_load_integer(int dtype, const void *data, int64_t i); /* u64 as its bits; floats truncated, saturating */
void weft_store_real(int dtype, void *data, int64_t i, double value);      /* rounds to nearest even */
void weft_store_integer(int dtype, void *data, int64_t i, int64_t value);  /* integers wrap */
/* Bytes of n packed elements. */
int64_t weft_dtype_bytes(int dtype, int64_t n);

/* --- dims.c: extents as expressions over symbols ------------------------------------------------------------------ */

/* A weft_dim is either a constant (low bit 0, value in the upper 63 bits) or an index into the table of expressions.
 * Equal expressions are one entry: a == b as polynomials, with floor divisions, minima and maxima as atoms, if and
 * only if the bits are equal. Extents are never negative, but expressions in between and elements of integer tensors
 * may be. */
#define WEFT_DIM_LIMIT (((int64_t)1 << 62) - 1) /* constants and coefficients saturate here; as a bound: "unbounded" */
static inline bool weft_dim_is_constant(weft_dim d) { return (d.bits & 1) == 0; }
static inline int64_t weft_dim_value(weft_dim d) { return d.bits >> 1; } /* of a constant */
static inline weft_dim weft_dim_of(int64_t value) { return (weft_dim){(int64_t)((uint64_t)value << 1)}; }
static inline bool weft_dim_same(weft_dim a, weft_dim b) { return a.bits == b.bits; }
static inline bool weft_dim_is(weft_dim d, int64_t value) { return d.bits == weft_dim_of(value).bits; }

struct weft_dims; /* the table; one per root graph */
struct weft_symbol_info {
    const char *name;
    int64_t low, high; /* inclusive; default 0 and 2^31 - 1 */
    int64_t hint;      /* what costs are computed for; 0: low, but at least 1 */
    bool data;         /* not known when tensors are bound: a node computes it, as its attribute `extent` says */
    weft_dim bound;    /* of a data symbol: the most it can be, for which memory is reserved */
};
struct weft_dims *weft_dims_new(struct weft_arena *arena);
struct weft_dims *weft_dims_clone(struct weft_arena *arena, const struct weft_dims *dims); /* same bits mean the same */

uint32_t weft_symbol_count(const struct weft_dims *dims);
const struct weft_symbol_info *weft_symbol_at(const struct weft_dims *dims, uint32_t i);
bool weft_symbol_find(const struct weft_dims *dims, const char *name, weft_dim *ret);
weft_dim weft_symbol_add(struct weft_dims *dims, const char *name, int64_t low, int64_t high, int64_t hint);
/* A symbol that a node computes, between 0 and `bound`, an expression over symbols added before. */
weft_dim weft_symbol_add_data(struct weft_dims *dims, const char *name, weft_dim bound);
/* Sets each data symbol to its bound, given the values of all others. */
void weft_symbols_at_bounds(const struct weft_dims *dims, int64_t *symbols);
/* Is d just one symbol? Then its number. */
bool weft_dim_is_symbol(const struct weft_dims *dims, weft_dim d, uint32_t *ret_symbol);

/* Is d a constant, or an expression of this table? Those of other tables may pass; they do no harm. */
bool weft_dim_exists(const struct weft_dims *dims, weft_dim d);

/* Results are canonical. Overflow of a constant beyond 62 bits saturates. b != 0 for division. */
weft_dim weft_dim_add(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_sub(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_mul(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_div(struct weft_dims *dims, weft_dim a, weft_dim b);      /* floor; exact where provable */
weft_dim weft_dim_ceil_div(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_mod(struct weft_dims *dims, weft_dim a, weft_dim b);      /* a - b * floor(a / b) */
weft_dim weft_dim_min(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_max(struct weft_dims *dims, weft_dim a, weft_dim b);
/* Expressions have limits. Who exceeds them gets 0 and an error is recorded; but between these two calls the reason is
 * kept for the caller instead, who must not use what was computed if there is one. Not to be nested. */
void weft_dims_try(struct weft_dims *dims);
const char *weft_dims_tried(struct weft_dims *dims); /* the first refusal, constant text, or NULL */
/* Has a number been saturated since weft_dims_try? Then results may be wrong, not only large. */
bool weft_dims_saturated(const struct weft_dims *dims);
/* Is a a multiple of b for all values of the symbols? Then the quotient. */
bool weft_dim_divides(struct weft_dims *dims, weft_dim a, weft_dim b, weft_dim *ret_quotient);
/* Bounds that hold for all values of the symbols in their ranges; maybe not tight. */
void weft_dim_range(const struct weft_dims *dims, weft_dim d, int64_t *ret_low, int64_t *ret_high);
/* Value for given symbol values (indexed by symbol number). */
int64_t weft_dim_evaluate(const struct weft_dims *dims, weft_dim d, const int64_t *symbols);
int64_t weft_dim_hint(const struct weft_dims *dims, weft_dim d);
/* Does the symbol occur in d, also inside of divisions, minima and maxima? */
bool weft_dim_mentions(const struct weft_dims *dims, weft_dim d, uint32_t symbol);
/* d as slope * symbol + rest, for given values of the other symbols; false where d is not of that form for all values
 * of this one, be it that a power, a division, a minimum or a maximum is in the way. */
bool weft_dim_linear(const struct weft_dims *dims, weft_dim d, uint32_t symbol, const int64_t *symbols,
                     int64_t *ret_slope, int64_t *ret_rest);
/* "2*N + 1", "(N + 1)/2 - 1", "min(N, 8)": parses back (dims_parse) to the same bits. */
void weft_dim_print(const struct weft_dims *dims, weft_dim d, struct weft_text *text);
/* Parses an expression (integers, symbols, + - * / % min() max() and parentheses) at *cursor, which it advances. On
 * failure returns false with a constant message; *cursor then stands at the culprit. Unknown symbols are an error. */
bool weft_dim_parse(struct weft_dims *dims, const char **cursor, const char *end, weft_dim *ret,
                    const char **ret_message);

/* --- layout.c: allocation domains --------------------------------------------------------------------------------- */

/* One storage axis: digit (index[axis] / div) % mod of a logical index; mod 0 means no modulus. */
struct weft_axis {
    uint8_t axis;
    int64_t div, mod;
};

enum weft_layout_kind { WEFT_STORED, WEFT_UNDECIDED /* {?} */, WEFT_REGISTER /* {-}: never stored */ };
enum weft_strength { WEFT_REQUIRED, WEFT_HINT, WEFT_FREE };

/* How a value of some rank and extents is stored: storage axes from outermost to innermost, each with a stride in
 * elements, from an offset. `dense` says the strides are those of a packed array in this order (with the padding that
 * splits imply); else `stride` holds them. Every logical axis is covered by its digits exactly once: sorted by div, the
 * last has div 1, each but the first has mod = div of its predecessor / own div, the first has none. */
struct weft_layout {
    uint8_t kind, strength;
    uint8_t axes;
    bool dense;
    uint32_t align;             /* bytes the first element is known to be aligned to; 0: unknown (element size) */
    weft_dim offset;            /* in elements, from the start of the storage */
    struct weft_axis axis[WEFT_MAX_STORAGE];
    weft_dim stride[WEFT_MAX_STORAGE];
};

struct weft_type {
    uint8_t dtype, rank;
    weft_dim extent[WEFT_MAX_RANK];
};

struct weft_layout weft_layout_row_major(int rank);
struct weft_layout weft_layout_order(int rank, const int *order); /* dense, outermost first */
bool weft_layout_is_row_major(const struct weft_layout *layout); /* dense, natural order, no offset, no split */
/* Breaks the rule of coverage? Then a constant message, else NULL. */
const char *weft_layout_check(const struct weft_layout *layout, const struct weft_type *type);
/* Do two elements surely share a place, for some or all values of the symbols? A stride of 0 along an axis that may be
 * longer than 1 counts, and a stride that is no larger than what the smaller ones reach; strides with symbols are not
 * judged. Such a layout is for what is only read. */
bool weft_layout_overlaps(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type);
/* Canonical form: axes of extent 1 right behind their logical predecessor, neighbouring digits of one axis merged,
 * numeric strides sorted, explicit strides that equal the dense ones turned to dense. */
void weft_layout_canonical(struct weft_dims *dims, struct weft_layout *layout, const struct weft_type *type);
bool weft_layout_same(const struct weft_layout *a, const struct weft_layout *b); /* of canonical layouts: same places */
/* Same places for every element, ignoring axes of extent 1; strength and align do not count. */
bool weft_layout_equal(struct weft_dims *dims, const struct weft_layout *a, const struct weft_layout *b,
                       const struct weft_type *type);
weft_dim weft_layout_axis_extent(struct weft_dims *dims, const struct weft_layout *layout, int storage_axis,
                                 const struct weft_type *type);
void weft_layout_strides(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                         weft_dim *ret_stride); /* explicit or dense, one per storage axis */
/* The logical strides, if every axis has one: no split, or one that strides go through evenly. */
bool weft_layout_logical_strides(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                                 weft_dim *ret_stride);
/* Place of an element, in elements from the start of the storage. All extents and strides constant. */
int64_t weft_layout_place(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                          const int64_t *index);
weft_dim weft_layout_elements(struct weft_dims *dims, const struct weft_layout *layout,
                              const struct weft_type *type); /* elements of storage, padding included, from offset on */
/* The layout of the result of a view op whose operand is stored in `operand`: false where no strided layout of the
 * result addresses the same storage. transpose: result axis i is operand axis perm[i]. */
bool weft_layout_transpose(const struct weft_layout *operand, const int *perm, struct weft_layout *ret);
bool weft_layout_reshape(struct weft_dims *dims, const struct weft_layout *operand, const struct weft_type *from,
                         const struct weft_type *to, struct weft_layout *ret);
bool weft_layout_slice(struct weft_dims *dims, const struct weft_layout *operand, const struct weft_type *from,
                       const weft_dim *start, const weft_dim *step, struct weft_layout *ret);
bool weft_layout_broadcast(struct weft_dims *dims, const struct weft_layout *operand, const struct weft_type *from,
                           const struct weft_type *to, const int *result_axis, struct weft_layout *ret);
/* The layout b for which transpose(b, perm) is `result`. */
bool weft_layout_untranspose(const struct weft_layout *result, const int *perm, struct weft_layout *ret);
enum weft_conversion { WEFT_CONVERT_NONE, WEFT_CONVERT_RUNS, WEFT_CONVERT_TRANSPOSE, WEFT_CONVERT_GENERAL };
/* What it takes to copy a value from layout a to b. All elements move in runs of *ret_run that are contiguous in
 * both. */
enum weft_conversion weft_layout_conversion(struct weft_dims *dims, const struct weft_layout *a,
                                            const struct weft_layout *b, const struct weft_type *type,
                                            int64_t *ret_run);
/* Elements that are neighbours in memory when walked from the innermost storage axis outwards; the padding of splits
 * counts as elements, symbols count with their hints. */
int64_t weft_layout_run(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type);
/* Largest power of two k, at most `limit`, such that each aligned block of k elements along the innermost storage
 * axis is k neighbours at a multiple of k elements, given the alignment of the storage. */
int64_t weft_layout_vector_width(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                                 int dtype, int64_t limit);
void weft_layout_print(struct weft_dims *dims, const struct weft_layout *layout,
                       struct weft_text *text); /* "{0 2 3 1}" */
/* Parses at '{'; as weft_dim_parse. */
bool weft_layout_parse(struct weft_dims *dims, const char **cursor, const char *end, struct weft_layout *ret,
                       const char **ret_message);

/* --- ops.c: what ops.def says ------------------------------------------------------------------------------------- */

enum weft_attr_key {
    WEFT_ATTR_NONE,
#define ATTR(name, kind, help) WEFT_ATTR_##name,
#include "attrs.def"
#undef ATTR
    WEFT_ATTR_COUNT
};
enum weft_attr_kind {
    WEFT_ATTR_INT, WEFT_ATTR_INTS, WEFT_ATTR_REAL, WEFT_ATTR_REALS, WEFT_ATTR_WORD, WEFT_ATTR_DTYPE, WEFT_ATTR_GRAPH
};
enum weft_opcode {
    WEFT_OP_NONE,
#define OP(name, min, max, results, traits, infer, eval, ...) WEFT_OP_##name,
#include "ops.def"
#undef OP
    WEFT_OP_COUNT
};
enum weft_trait {
    WEFT_ELEMENTWISE = 1 << 0,  /* result element i depends on operand elements i only; shapes are equal */
    WEFT_VIEW = 1 << 1,         /* rearranges without computing: may be an alias */
    WEFT_REDUCTION = 1 << 2,
    WEFT_CONTRACTION = 1 << 3,
    WEFT_MOVEMENT = 1 << 4,     /* copies elements about; values are not computed */
    WEFT_COMPOSITE = 1 << 5,    /* has a decomposition into other ops */
    WEFT_COMMUTATIVE = 1 << 6,  /* operands 0 and 1 may be swapped */
    WEFT_STATED = 1 << 7,       /* the result type is part of the node, not inferred from the operands */
    WEFT_SOURCE = 1 << 8,       /* no operands: constants */
    WEFT_CONTROL = 1 << 9,      /* has bodies */
    WEFT_PLACEMENT = 1 << 10,   /* identity on values, says where they live: relayout */
    WEFT_DATA = 1 << 11,        /* defines the symbols that its attribute `extent` names, from the operands' elements */
    WEFT_RANDOM = 1 << 12,      /* a function of its seed and of places: other programs get other numbers */
};

struct weft_attr_spec {
    uint8_t key;
    bool required;
    bool has_default;    /* an attribute equal to it (all elements, for a list) is dropped when a node is made */
    double fallback;     /* the default */
    const char *words;   /* legal words, separated by blanks */
    const char *word;    /* the first of them, which is the default */
};
struct weft_infer;
struct weft_eval;
struct weft_op_info {
    const char *name;
    int8_t min_operands, max_operands; /* max -1: any number */
    int8_t results;                    /* -1: as many as the bodies return */
    uint32_t traits;
    bool (*infer)(struct weft_infer *);
    void (*eval)(struct weft_eval *);
    const struct weft_attr_spec *attrs; /* in the order of printing; ends with key NONE */
};
extern const struct weft_op_info weft_ops[WEFT_OP_COUNT];
extern const char *const weft_attr_names[WEFT_ATTR_COUNT];
extern const uint8_t weft_attr_kinds[WEFT_ATTR_COUNT];
int weft_opcode_find(const char *name, size_t length);    /* 0 if unknown */
int weft_attr_key_find(const char *name, size_t length);  /* 0 if unknown */
const struct weft_attr_spec *weft_attr_spec_find(int opcode, int key); /* NULL if the op has no such attribute */

/* --- graph.c: ids, values, nodes, uses ---------------------------------------------------------------------------- */

typedef struct { uint32_t id; } weft_node; /* id 0 is "none" */
#define WEFT_NO_VALUE ((weft_val){0})
#define WEFT_NO_NODE ((weft_node){0})

struct weft_attr {
    uint8_t key, kind;
    uint32_t count;
    union {
        weft_dim integer;
        double real;
        const weft_dim *integers;
        const double *reals;
        const char *word;
        int32_t dtype;
        struct weft_graph *graph;
    };
};

/* Right of `!`: a kernel's name and key=value tokens, kept as text. */
struct weft_plan_note {
    const char *kernel; /* or NULL */
    uint32_t count;
    const char **key, **value;
};

/* The elements of a const. */
enum weft_constant_kind { WEFT_CONST_SPLAT, WEFT_CONST_BLOB, WEFT_CONST_RANDOM };
struct weft_constant {
    uint8_t kind;
    bool integer;       /* splat: which of the two members holds it (integers and bool: integer) */
    double real;
    int64_t splat;
    uint64_t seed;      /* random: uniform in [-scale, scale), by the generator that FORMAT.md states */
    double scale;
    struct weft_blob *blob; /* packed row-major elements at blob->data + offset, perhaps unaligned */
    uint64_t offset;
};

struct weft_value {
    struct weft_type type;
    const char *name;        /* unique in the graph, or NULL: numbered when printed */
    weft_node def;           /* none for parameters */
    uint32_t result;         /* which result of def, or which parameter */
    bool is_param, is_mut;
    uint32_t layout;         /* index in the root's table; 0 is row-major of any rank */
    uint32_t first_use;      /* index of an operand slot + 1; 0: none */
    uint32_t uses;           /* operand slots, not counting returns */
    uint32_t returns;        /* times returned */
    uint32_t first_return;   /* index of a return slot + 1; 0: none */
    const weft_dim *content; /* elements of a small integer or bool tensor, where known as expressions; else NULL */
};

struct weft_operand {        /* one slot */
    weft_val value;
    weft_node node;
    uint32_t next, previous; /* in the list of uses of value, slot + 1 */
};

struct weft_node_info {
    uint16_t op, attrs;
    bool dead;
    uint32_t operands, results;
    uint32_t first_operand;  /* index of slots */
    uint32_t first_result;   /* values are consecutive ids */
    struct weft_attr *attr;
    struct weft_constant *constant; /* of const */
    weft_node next, previous; /* order of execution */
    uint32_t group;          /* index of a group, 0: none */
    const struct weft_plan_note *plan; /* or NULL */
    const char *name;        /* the source's name of the node, for messages, or NULL */
    int32_t line;            /* in the source text, or 0 */
};

struct weft_group {          /* fuse @name ! plan { nodes, consecutive in order } */
    const char *name;
    const struct weft_plan_note *plan;
};

struct weft_return_slot {
    weft_val value;
    weft_val mut;            /* the parameter whose buffer it becomes, or none */
    uint32_t next, previous; /* in the list of returns of value, slot + 1 */
};

#define WEFT_MAX_DEPTH 64    /* of bodies in bodies */
#define WEFT_ORDER 1u        /* graph->position: rank of each live node in the order */

/* One run of a pass. */
struct weft_pass_record {
    const char *pass;
    int64_t ns;
    uint32_t nodes_before, nodes_after; /* of the graph it was called on, without bodies */
    bool changed;
};

struct weft_graph {
    struct weft_context *context;
    struct weft_graph *root;     /* itself at top level */
    struct weft_graph *parent;   /* of a body; NULL at top level */
    int32_t depth;               /* 0 at top level, at most WEFT_MAX_DEPTH */
    struct weft_arena *arena;    /* the root's; own_arena there */
    struct weft_arena own_arena;
    struct weft_dims *dims;      /* the root's */
    const char *name;
    const char *file;            /* where it came from, or NULL */

    struct weft_value *value;    /* [1, values) */
    struct weft_node_info *node; /* [1, nodes) */
    struct weft_operand *slot;
    struct weft_group *group;    /* [1, groups) */
    weft_val *param;
    struct weft_return_slot *ret;
    uint32_t values, nodes, slots, groups, params, returns;
    uint32_t value_capacity, node_capacity, slot_capacity, group_capacity, param_capacity, return_capacity;
    weft_node first, last;
    uint32_t live_nodes;
    bool returned;               /* a return line was seen */
    uint32_t index;              /* of a body: where its parent lists it */
    bool frozen;                 /* a body that a node uses: callers may not change it any more; passes may */

    struct weft_graph **body;    /* subgraphs, owned */
    uint32_t bodies, body_capacity;

    struct weft_layout *layout;  /* root: interned canonical layouts; [0] stands for row-major */
    uint32_t layouts, layout_capacity;
    uint32_t *layout_hash, layout_hash_size;
    struct weft_blob **blob;     /* root: held until the graph dies */
    uint32_t blobs, blob_capacity;
    struct weft_name_slot *names; /* hash of value names */
    uint32_t name_slots, name_count;

    uint32_t *position;          /* analysis ORDER, by node id */
    uint32_t analyses;           /* which are valid */
    struct weft_remark *remark;  /* root */
    uint32_t remarks, remark_capacity;
    int64_t rewrites, rewrite_limit; /* root: the one counter; limit from WEFT_STOP_AFTER, -1: none */
    struct weft_pass_record *record; /* root: every run of a pass, in order */
    uint32_t records, record_capacity;
    struct weft_arena scratch;   /* root: what a pass allocates; emptied when it returns */
};

static inline struct weft_value *weft_value_of(const struct weft_graph *g, weft_val v) { return &g->value[v.id]; }
static inline struct weft_node_info *weft_node_of(const struct weft_graph *g, weft_node n) { return &g->node[n.id]; }
static inline const struct weft_type *weft_type_of(const struct weft_graph *g, weft_val v)
{
    return &g->value[v.id].type;
}
static inline int weft_opcode_of(const struct weft_graph *g, weft_node n) { return g->node[n.id].op; }
static inline weft_node weft_def(const struct weft_graph *g, weft_val v) { return g->value[v.id].def; }
static inline int weft_def_opcode(const struct weft_graph *g, weft_val v) { return g->node[g->value[v.id].def.id].op; }
static inline weft_val weft_operand(const struct weft_graph *g, weft_node n, unsigned i)
{
    return g->slot[g->node[n.id].first_operand + i].value;
}
static inline weft_val weft_result(const struct weft_graph *g, weft_node n, unsigned i)
{
    return (weft_val){g->node[n.id].first_result + i};
}
static inline bool weft_is(weft_val a, weft_val b) { return a.id == b.id; }
static inline const struct weft_op_info *weft_op_of(const struct weft_graph *g, weft_node n)
{
    return &weft_ops[g->node[n.id].op];
}

/* Live nodes in order. The body may erase any node and insert others; those inserted right after the current one are
 * not visited. (A dead node keeps its `next`, so a walk that stands on one finds its way back.) */
#define weft_foreach_node(g, n) \
    for (weft_node n = (g)->first, next_##n = {n.id ? (g)->node[n.id].next.id : 0}; n.id; \
         n = next_##n, next_##n.id = n.id ? (g)->node[n.id].next.id : 0) \
        if ((g)->node[n.id].dead) {} else

struct weft_graph *weft_graph_new(struct weft_context *context, const char *name); /* under weft_protected */
struct weft_graph *weft_graph_new_body(struct weft_graph *parent, const char *name); /* NULL and an error if too deep */
/* Is `body` listed among the graph's bodies? Side arrays about bodies go by body->index. */
static inline bool weft_is_body(const struct weft_graph *graph, const struct weft_graph *body)
{
    return body && body->index < graph->bodies && graph->body[body->index] == body;
}
void weft_graph_free(struct weft_graph *graph);
/* Under weft_protected; live nodes only, blobs held. The graph must be valid. *ret_graph is set before it is filled, so
 * that the caller can free it if memory is refused on the way. */
void weft_graph_copy(const struct weft_graph *graph, struct weft_graph **ret_graph);
void weft_graph_hold(struct weft_graph *graph, struct weft_blob *blob); /* takes over one reference */

weft_val weft_add_param(struct weft_graph *graph, const char *name, const struct weft_type *type);
/* Appends to the results. */
void weft_add_return(struct weft_graph *graph, weft_val value, weft_val mut);
void weft_clear_returns(struct weft_graph *graph);
uint32_t weft_add_group(struct weft_graph *graph, const char *name);
weft_val weft_value_find(const struct weft_graph *graph, const char *name, size_t length);
/* Names a value; a name that is taken gets a suffix ".1", ".2", …; an empty one is none. */
void weft_set_name(struct weft_graph *graph, weft_val value, const char *name, size_t length);

/* Layouts are interned: canonicalise, look up, store. */
uint32_t weft_intern_layout(struct weft_graph *graph, const struct weft_layout *layout, const struct weft_type *type);
/* The layout of a value, whatever its index (0 expands to row-major of the value's rank). */
struct weft_layout weft_layout_of(const struct weft_graph *graph, weft_val value);
void weft_set_value_layout(struct weft_graph *graph, weft_val value, const struct weft_layout *layout);

const struct weft_attr *weft_attr_find(const struct weft_graph *graph, weft_node node, int key); /* NULL if absent */
/* With the op's default when absent. A symbolic integer asks for a caller that knows it: weft_attr_dim. */
int64_t weft_attr_int(const struct weft_graph *graph, weft_node node, int key);
weft_dim weft_attr_dim(const struct weft_graph *graph, weft_node node, int key);
double weft_attr_real(const struct weft_graph *graph, weft_node node, int key);
const char *weft_attr_word(const struct weft_graph *graph, weft_node node, int key);
/* List element i with the default where the list is absent. */
weft_dim weft_attr_at(const struct weft_graph *graph, weft_node node, int key, unsigned i);
bool weft_attr_equal(const struct weft_attr *a, const struct weft_attr *b);

weft_dim weft_type_elements(struct weft_dims *dims, const struct weft_type *type);
bool weft_type_same(const struct weft_type *a, const struct weft_type *b);
bool weft_type_is_constant(const struct weft_type *type); /* no symbols in the extents */
/* Most elements of a tensor: so many of the widest still have a size in bits. */
#define WEFT_MAX_ELEMENTS (INT64_MAX / 64)
/* Is the product of the extents that are numbers small enough? Zeros do not count, since strides leave them out. Every
 * value of a graph has passed this. */
bool weft_type_check_size(const struct weft_type *type);
void weft_type_print(struct weft_dims *dims, const struct weft_type *type, struct weft_text *text); /* "f32[N,3]" */

/* Analyses: compute what is missing / state what survives a change. */
void weft_require(struct weft_graph *graph, uint32_t analyses);
bool weft_progress(struct weft_graph *graph, bool changed, uint32_t keeps); /* returns changed */

void weft_add_remark(struct weft_graph *graph, const char *who, weft_val where, const char *verdict, const char *format,
                     ...) WEFT_PRINTF(5, 6);

/* --- constant.c: elements of const nodes -------------------------------------------------------------------------- */

bool weft_is_const(const struct weft_graph *graph, weft_val value); /* defined by a const node */
/* One element. `real` of an integer is rounded: good for its magnitude, not to compute with. */
struct weft_element {
    bool is_integer;    /* integers and bools */
    int64_t integer;    /* u64 as its bits */
    double real;
};
/* If all elements of a const have the same bits: that element, as its dtype holds it. */
bool weft_const_splat(const struct weft_graph *graph, weft_val value, struct weft_element *ret);
/* Writes the packed row-major elements of a const (of constant extents) to `data`. */
void weft_const_write(const struct weft_graph *graph, weft_val value, void *data);
/* The elements in place, or NULL for a splat or random const. Perhaps unaligned. */
const void *weft_const_data(const struct weft_graph *graph, weft_val value);

/* --- infer.c, infer_*.c: result types; content.c: symbolic elements ----------------------------------------------- */

/* A node about to exist. Types of operands by value; `result` is filled by the op's infer function, and holds the
 * stated type beforehand where the op is WEFT_STATED (one result). */
struct weft_infer {
    struct weft_graph *graph;
    int op;
    const weft_val *operand;
    unsigned operands;
    const struct weft_attr *attr;
    unsigned attrs;
    struct weft_type *result;
    unsigned results;
    const struct weft_place *place;
    const struct weft_constant *constant;
};
/* Reports through weft_error with the op's name and returns false. */
bool weft_infer_fail(struct weft_infer *infer, const char *format, ...) WEFT_PRINTF(2, 3);
const struct weft_type *weft_infer_type(const struct weft_infer *infer, unsigned operand);
const struct weft_attr *weft_infer_attr(const struct weft_infer *infer, int key);
/* With the default of the op's table; the same for list element i. */
weft_dim weft_infer_dim(const struct weft_infer *infer, int key);
weft_dim weft_infer_at(const struct weft_infer *infer, int key, unsigned i);
/* Checks arity, attributes and types; fills infer->result. */
bool weft_infer_run(struct weft_infer *infer);
/* Elements of result 0 from the contents of the operands, or NULL; at most WEFT_MAX_CONTENT of them. */
#define WEFT_MAX_CONTENT 64
const weft_dim *weft_content_of(struct weft_graph *graph, weft_node node);

/* --- build.c: making nodes ---------------------------------------------------------------------------------------- */

struct weft_node_spec {
    int op;
    const weft_val *operand;
    unsigned operands;
    const struct weft_attr *attr; /* any order; those equal to defaults are dropped; lists are copied */
    unsigned attrs;
    const struct weft_type *stated;         /* type of the result, for WEFT_STATED ops */
    const struct weft_constant *constant;   /* of const; its blob must be held by the graph */
    weft_node before;                       /* none: at the end */
    const char *name;                       /* of the source's node, for messages */
    struct weft_place place;
};
/* The one gate through which nodes come to be. Infers types; on wrong input records errors and returns none. */
weft_node weft_add_node(struct weft_graph *graph, const struct weft_node_spec *spec);

/* A cursor builder for passes: nodes go before `before`. Wrong types are broken invariants here. */
struct weft_builder {
    struct weft_graph *graph;
    weft_node before;
};
weft_val weft_build(struct weft_builder *b, int op, unsigned operands, const weft_val *operand, unsigned attrs,
                    const struct weft_attr *attr, const struct weft_type *stated);
weft_val weft_build_unary(struct weft_builder *b, int op, weft_val x);
weft_val weft_build_binary(struct weft_builder *b, int op, weft_val x, weft_val y);
weft_val weft_build_splat(struct weft_builder *b, const struct weft_type *type, double value);
/* All elements the same, exactly; the element is of the type's kind. */
weft_val weft_build_element(struct weft_builder *b, const struct weft_type *type, const struct weft_element *element);
/* A const of packed elements, copied. */
weft_val weft_build_const(struct weft_builder *b, const struct weft_type *type, const void *data);
weft_val weft_build_cast(struct weft_builder *b, weft_val x, int dtype);
weft_val weft_build_transpose(struct weft_builder *b, weft_val x, const int *perm);
weft_val weft_build_reshape(struct weft_builder *b, weft_val x, const struct weft_type *type);
/* result axis result_axis[i] carries operand axis i. */
weft_val weft_build_bcast(struct weft_builder *b, weft_val x, const struct weft_type *type, const int *result_axis);
weft_val weft_build_reduce(struct weft_builder *b, int op, weft_val x, unsigned axes, const int *axis, bool keepdims);
struct weft_attr weft_attr_of_int(int key, int64_t value);
struct weft_attr weft_attr_of_real(int key, double value);
struct weft_attr weft_attr_of_word(int key, const char *word);
struct weft_attr weft_attr_of_ints(struct weft_graph *graph, int key, unsigned count, const int64_t *values);
struct weft_attr weft_attr_of_dims(int key, unsigned count, const weft_dim *values);

/* --- edit.c: the few legal rewrites ------------------------------------------------------------------------------- */

/* The one counter of decisions: true if rewrite number n may happen (WEFT_STOP_AFTER=n bisects). Asked once per
 * rewrite, before the first edit of it. `who` is the pass, `where` the value that changes. */
bool weft_permit(struct weft_graph *graph, const char *who, weft_val where);
/*   uses of %a, returns too       →   uses of %b; %b takes %a's name if it has none */
void weft_replace_uses(struct weft_graph *graph, weft_val a, weft_val b);
/*   n: … op %a(slot i)            →   n: … op %b   (types may differ; the caller restores validity) */
void weft_replace_operand(struct weft_graph *graph, weft_node node, unsigned i, weft_val value);
/*   n has no uses                 →   gone; its operands lose a use */
void weft_erase_node(struct weft_graph *graph, weft_node node);
/*   … a … n                       →   … n a …      n keeps its operands before it: the caller knows */
void weft_move_before(struct weft_graph *graph, weft_node node, weft_node before);
/*   n: op attrs                   →   n: op attrs with key set / removed */
void weft_set_attr(struct weft_graph *graph, weft_node node, const struct weft_attr *attr);
void weft_drop_attr(struct weft_graph *graph, weft_node node, int key);
/*   return %a                     →   return %b   for result i */
void weft_replace_return(struct weft_graph *graph, uint32_t i, weft_val value);
/* Sets what stands right of `!`. Tokens are copied. */
void weft_set_plan(struct weft_graph *graph, weft_node node, const char *kernel, uint32_t count, const char *const *key,
                   const char *const *value);
/* The strip law: drops plans, groups, relayouts, and every layout but those of parameters and returned values. True if
 * anything changed. */
bool weft_strip(struct weft_graph *graph);

/* --- print.c, parse.c, validate.c: the language of FORMAT.md ------------------------------------------------------ */

struct weft_print_options {
    const char *const *under;    /* per node id, a text to print as a comment below the line, or NULL */
    uint32_t inline_limit;       /* constants of up to so many elements are printed in place; 0: 64 */
    bool all_inline;             /* print every blob constant in place, whatever its size */
    bool absolute_files;         /* the text will not lie in the folder that the graph came from */
    /* Called for a larger constant that lies in no file; returns a file name and sets the offset, or NULL: then its
     * content hash stands in the text. */
    const char *(*place_blob)(void *user, const void *data, size_t bytes, uint64_t *ret_offset);
    void *user;
};
void weft_print_graph(const struct weft_graph *graph, const struct weft_print_options *options, struct weft_text *text);
/* Content address of a constant's bytes: the 32 hex digits of their XXH3-128, and a NUL. */
void weft_blob_hash(const void *data, size_t bytes, char ret[33]);
/* "%name" or "%12": how a value is printed; text lives in the arena. An unnamed value costs a walk over the graph. */
const char *weft_value_text(const struct weft_graph *graph, weft_val value);
/* The same for all values, by id, without sigil, in one walk. */
const char **weft_value_labels(const struct weft_graph *graph, struct weft_arena *arena);

struct weft_parse_options {
    const char *name;            /* of the text, for messages and relative files */
    bool keep_going;             /* parse all graphs of the text, not only the first */
    /* Finds the elements of `const blob=HASH`; the caller gets a reference of its own. NULL: unknown. */
    struct weft_blob *(*find_blob)(void *user, const char *hash, uint64_t *ret_offset);
    void *user;
};
/* Parses top-level graph number `index` of a text. Errors are recorded with line and column, several at once. NULL
 * if there were errors; *ret_count gets the number of top-level graphs. */
struct weft_graph *weft_parse_graph(struct weft_context *context, const char *text, size_t bytes, uint32_t index,
                                    const struct weft_parse_options *options, uint32_t *ret_count);

struct weft_finding {
    weft_node node;              /* or none: about the graph */
    const char *message;
};
/* Every broken rule; the array lives in `arena`. */
uint32_t weft_find_errors(const struct weft_graph *graph, struct weft_arena *arena, struct weft_finding **ret);
/* Records each finding as an error; true if there is none. */
bool weft_validate_graph(const struct weft_graph *graph);

/* --- eval.c, eval_*.c: the reference evaluator -------------------------------------------------------------------- */

/* One node with its tensors. Tensors are strided (outputs too); extents and strides are concrete. */
struct weft_eval {
    const struct weft_graph *graph;
    weft_node node;
    int64_t *symbols;            /* values by symbol number; written by weft_eval_define_symbols alone */
    const struct weft_tensor *in;
    struct weft_tensor *out;
    struct weft_context *context; /* for scratch memory (weft_allocate) */
    bool failed;                 /* set when scratch memory was refused */
};
/* Computes a node's results from its operands' tensors. False if memory was refused. Any thread. */
bool weft_eval_node(struct weft_eval *eval);
/* Sets the data symbols that a WEFT_DATA op defines, from its operands' tensors, before its results have extents. */
bool weft_eval_define_symbols(struct weft_eval *eval);
/* Evaluates a whole graph. `out[i].data` NULL: allocated (dense). Returns a status and records errors. */
int weft_eval_graph(const struct weft_graph *graph, const struct weft_tensor *in, uint32_t in_count,
                    struct weft_tensor *out, uint32_t out_count);
/* Solves the symbols from the extents of the inputs; checks every extent and range. On failure a message in
 * `message`. */
int weft_solve_symbols(const struct weft_graph *graph, const struct weft_tensor *in, uint32_t in_count,
                       int64_t *symbols, char *message, size_t message_bytes);
/* Checks what depends on the values of the symbols: extents, counts of elements, slices. On failure fills `message`. */
bool weft_check_sizes(const struct weft_graph *graph, const int64_t *symbols, char *message, size_t message_bytes);
/* Records an error for each symbol that something needs and that no parameter's extents mention: a run could never know
 * it. Whether mentioned ones can be solved is seen when sizes are given. */
bool weft_check_symbols(const struct weft_graph *graph);
/* Strides of a packed row-major array. */
void weft_tensor_dense(struct weft_tensor *tensor);

#endif
