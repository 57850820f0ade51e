/* SPDX-License-Identifier: Apache-2.0 */
/* model.h: an ONNX file as structs. Strings and bytes are spans of the mapped file, not NUL-terminated; arrays live in
 * the scratch arena of the import. Tensors inside attributes and subgraphs stay undecoded until an op asks for them, so
 * nothing here recurses. */
#ifndef WEFT_ONNX_MODEL_H
#define WEFT_ONNX_MODEL_H

#include "ir/ir.h"
#include "onnx/wire.h"

struct onnx_string {
    const char *data;
    size_t length;
};
static inline bool onnx_is(struct onnx_string string, const char *text)
{
    return __builtin_strlen(text) == string.length && __builtin_memcmp(string.data, text, string.length) == 0;
}

static inline bool onnx_same(struct onnx_string a, struct onnx_string b)
{
    return a.length == b.length && (a.length == 0 || __builtin_memcmp(a.data, b.data, a.length) == 0);
}
/* ONNX's own domain has two names. */
static inline bool onnx_is_default(struct onnx_string domain)
{
    return domain.length == 0 || onnx_is(domain, "ai.onnx");
}

struct onnx_strings {
    struct onnx_string *item;
    uint32_t count, capacity;
};

/* opset_import: the version of each domain that a model or function is written in. */
struct onnx_opset {
    struct onnx_string domain;
    int64_t version;
};
struct onnx_opsets {
    struct onnx_opset *item;
    uint32_t count, capacity;
};

struct onnx_tensor {
    struct onnx_string name;
    int32_t type;  /* TensorProto.DataType */
    uint32_t rank; /* more than WEFT_MAX_RANK is possible: then dim holds the first ones */
    int64_t dim[WEFT_MAX_RANK];
    struct weft_span message; /* for another walk over the typed elements */
    struct weft_span raw;
    bool has_raw, external;
    struct onnx_string location, offset, length; /* of external data */
};

enum onnx_attribute_type {
    ONNX_FLOAT = 1,
    ONNX_INT,
    ONNX_STRING,
    ONNX_TENSOR,
    ONNX_GRAPH,
    ONNX_FLOATS,
    ONNX_INTS,
    ONNX_STRINGS,
    ONNX_OTHER
};

struct onnx_attribute {
    struct onnx_string name;
    int32_t type; /* enum onnx_attribute_type */
    float real;
    int64_t integer;
    struct onnx_string string;
    struct weft_span message; /* of a tensor or a graph */
    float *reals;
    int64_t *integers;
    uint32_t count, capacity; /* of reals or integers */
    struct onnx_strings strings;
    bool is_reference;        /* to an attribute of a function, which has the name `reference` */
    struct onnx_string reference;
    bool used;                /* set when an importer reads it */
};

struct onnx_node {
    struct onnx_strings input, output;
    struct onnx_string name, op, domain, overload;
    struct onnx_string scopes; /* metadata of PyTorch's exporter: "['', 'encoder', 'encoder.layer.0', 'add_3']" */
    struct onnx_attribute *attribute;
    uint32_t attributes, attribute_capacity;
};

struct onnx_dim {
    bool has_value;
    int64_t value;
    struct onnx_string symbol;
};

struct onnx_value {
    struct onnx_string name;
    bool is_tensor, has_shape;
    const char *kind; /* "sequence", "optional", …: what it is instead of a tensor, or NULL */
    int32_t type;     /* TensorProto.DataType */
    uint32_t rank;    /* may exceed WEFT_MAX_RANK */
    struct onnx_dim dim[WEFT_MAX_RANK];
};

struct onnx_graph {
    struct onnx_string name;
    struct onnx_node *node;
    struct onnx_tensor *initializer;
    struct onnx_value *input, *output;
    uint32_t nodes, initializers, inputs, outputs;
    uint32_t node_capacity, initializer_capacity, input_capacity, output_capacity;
    bool has_sparse; /* sparse initializers, which weft does not read */
};

/* A function of the model. */
struct onnx_function {
    struct onnx_string name, domain, overload;
    struct onnx_strings input, output, required; /* required: names of attributes without a default */
    struct onnx_attribute *attribute;            /* those with one */
    struct onnx_node *node;
    struct onnx_opsets opsets;
    uint32_t attributes, nodes;
    uint32_t attribute_capacity, node_capacity;
    bool surveyed;              /* its missing ops have been counted */
    struct onnx_function *next; /* of the same name, in another domain or overload */
};

struct onnx_model {
    int64_t ir_version;
    struct onnx_graph graph;
    bool has_graph;
    struct onnx_opsets opsets;
    struct onnx_function *function;
    uint32_t functions, function_capacity;
};

/* What every decoder needs; `start` is where byte offsets in messages count from. */
struct onnx_reader {
    struct weft_context *context;
    struct weft_arena *arena;
    const uint8_t *start, *end;
    const char *path;           /* for messages */
    bool is_path;               /* it names the file, not something in memory */
    const char *folder;         /* of external data, with its last slash; NULL: there may be none */
};

/* Each returns false after recording an error with the file and the byte. */
bool weft_onnx_read_model(struct onnx_reader *reader, struct weft_span file, struct onnx_model *ret_model);
bool weft_onnx_read_graph(struct onnx_reader *reader, struct weft_span message, struct onnx_graph *ret_graph);
bool weft_onnx_read_tensor(struct onnx_reader *reader, struct weft_span message, struct onnx_tensor *ret_tensor);
/* The version of ONNX's own domain in a list, or `otherwise` where it has none. */
int64_t weft_onnx_opset_of(const struct onnx_opsets *opsets, int64_t otherwise);
/* Records the error of a walk, if it has one. */
bool weft_onnx_finish(struct onnx_reader *reader, const struct weft_wire *wire);

#endif
