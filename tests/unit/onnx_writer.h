/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_writer.h: just enough of protobuf to write ONNX models in tests, byte by byte, so that wrong ones can be written
 * too. */
#ifndef WEFT_TEST_ONNX_WRITER_H
#define WEFT_TEST_ONNX_WRITER_H

#include "weft/weft.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bytes {
    uint8_t data[16384];
    size_t count;
};

static inline void put_raw(struct bytes *to, const void *data, size_t count)
{
    assert_true(count <= sizeof to->data - to->count);
    if (count)
        memcpy(to->data + to->count, data, count);
    to->count += count;
}

static inline void put_varint(struct bytes *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_raw(to, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    put_raw(to, &(uint8_t){(uint8_t)value}, 1);
}

static inline void put_integer(struct bytes *to, unsigned number, int64_t value)
{
    put_varint(to, number << 3);
    put_varint(to, (uint64_t)value);
}

static inline void put_bytes(struct bytes *to, unsigned number, const void *data, size_t count)
{
    put_varint(to, number << 3 | 2);
    put_varint(to, count);
    put_raw(to, data, count);
}

static inline void put_text(struct bytes *to, unsigned number, const char *text)
{
    put_bytes(to, number, text, strlen(text));
}

static inline void put_message(struct bytes *to, unsigned number, const struct bytes *message)
{
    put_bytes(to, number, message->data, message->count);
}

static inline void put_float(struct bytes *to, unsigned number, float value)
{
    put_varint(to, number << 3 | 5);
    put_raw(to, &value, 4);
}

/* --- messages of ONNX --------------------------------------------------------------------------------------------- */

/* Comma-separated names, each as a field; "" between commas is an absent one. */
static inline void put_names(struct bytes *to, unsigned number, const char *names)
{
    for (const char *name = names; *names; name += strcspn(name, ",") + 1) {
        put_bytes(to, number, name, strcspn(name, ","));
        if (!name[strcspn(name, ",")])
            break;
    }
}

static inline void put_attribute(struct bytes *node, const char *name, int type, const struct bytes *payload)
{
    struct bytes attribute = {.count = 0};
    put_text(&attribute, 1, name);
    put_integer(&attribute, 20, type);
    put_raw(&attribute, payload->data, payload->count);
    put_message(node, 5, &attribute);
}

static inline void put_int_attribute(struct bytes *node, const char *name, int64_t value)
{
    struct bytes payload = {.count = 0};
    put_integer(&payload, 3, value);
    put_attribute(node, name, 2, &payload);
}

static inline void put_ints_attribute(struct bytes *node, const char *name, unsigned count, const int64_t *values)
{
    struct bytes payload = {.count = 0};
    for (unsigned i = 0; i < count; i++)
        put_integer(&payload, 8, values[i]);
    put_attribute(node, name, 7, &payload);
}

static inline void put_float_attribute(struct bytes *node, const char *name, float value)
{
    struct bytes payload = {.count = 0};
    put_float(&payload, 2, value);
    put_attribute(node, name, 1, &payload);
}

static inline void put_text_attribute(struct bytes *node, const char *name, const char *value)
{
    struct bytes payload = {.count = 0};
    put_text(&payload, 4, value);
    put_attribute(node, name, 3, &payload);
}

static inline void put_graph_attribute(struct bytes *node, const char *name, const struct bytes *graph)
{
    struct bytes payload = {.count = 0};
    put_message(&payload, 6, graph);
    put_attribute(node, name, 5, &payload);
}

/* A node without its attributes; its name is the op's in lower case with the first output: "Add_y". */
static inline struct bytes node_of(const char *op, const char *inputs, const char *outputs)
{
    struct bytes node = {.count = 0};
    char name[100];
    snprintf(name, sizeof name, "%s_%.*s", op, (int)strcspn(outputs, ","), outputs);
    put_names(&node, 1, inputs);
    put_names(&node, 2, outputs);
    put_text(&node, 3, name);
    put_text(&node, 4, op);
    return node;
}

static inline void put_node(struct bytes *graph, const char *op, const char *inputs, const char *outputs)
{
    const struct bytes node = node_of(op, inputs, outputs);
    put_message(graph, 1, &node);
}

/* A value of the given TensorProto.DataType; extents are numbers or symbols, separated by blanks ("N 3 ?"). */
static inline void put_value(struct bytes *graph, unsigned number, const char *name, int type, const char *extents)
{
    struct bytes shape = {.count = 0}, tensor = {.count = 0}, wrapper = {.count = 0}, value = {.count = 0};
    for (const char *extent = extents; *extent; extent += strcspn(extent, " "), extent += *extent == ' ') {
        struct bytes dim = {.count = 0};
        if (*extent >= '0' && *extent <= '9')
            put_integer(&dim, 1, strtoll(extent, NULL, 10));
        else if (*extent != '?')
            put_bytes(&dim, 2, extent, strcspn(extent, " "));
        put_message(&shape, 1, &dim);
    }
    put_integer(&tensor, 1, type);
    put_message(&tensor, 2, &shape);
    put_message(&wrapper, 1, &tensor);
    put_text(&value, 1, name);
    put_message(&value, 2, &wrapper);
    put_message(graph, number, &value);
}

static inline void put_input(struct bytes *graph, const char *name, const char *extents)
{
    put_value(graph, 11, name, 1, extents);
}
static inline void put_output(struct bytes *graph, const char *name) { put_value(graph, 12, name, 1, ""); }

/* A tensor without its elements. */
static inline struct bytes tensor_of(const char *name, int type, unsigned rank, const int64_t *extent)
{
    struct bytes tensor = {.count = 0};
    for (unsigned i = 0; i < rank; i++)
        put_integer(&tensor, 1, extent[i]);
    put_integer(&tensor, 2, type);
    put_text(&tensor, 8, name);
    return tensor;
}

/* A list of integers as an initializer in raw bytes. */
static inline void put_ints(struct bytes *graph, const char *name, unsigned count, const int64_t *values)
{
    struct bytes tensor = tensor_of(name, 7, 1, &(int64_t){count});
    put_bytes(&tensor, 9, values, count * sizeof *values);
    put_message(graph, 5, &tensor);
}

static inline struct bytes model_of(const struct bytes *graph, int64_t ir_version, int64_t opset)
{
    struct bytes model = {.count = 0}, version = {.count = 0};
    put_integer(&model, 1, ir_version);
    put_integer(&version, 2, opset);
    put_message(&model, 8, &version);
    put_message(&model, 7, graph);
    return model;
}

/* --- loading ---------------------------------------------------------------------------------------------------------
 */

/* A folder of its own for the files of a test. */
struct folder {
    struct weft_context *context;
    char path[64], model[80];
};

static inline struct folder open_folder(void)
{
    struct folder folder = {.path = "/tmp/weft_onnx_XXXXXX"};
    assert_non_null(mkdtemp(folder.path));
    snprintf(folder.model, sizeof folder.model, "%s/model.onnx", folder.path);
    assert_int_equal(weft_open(NULL, &folder.context), WEFT_OK);
    return folder;
}

static inline void close_folder(struct folder *folder)
{
    weft_close(folder->context);
    remove(folder->model);
    assert_int_equal(rmdir(folder->path), 0);
}

static inline void write_file(const char *path, const void *data, size_t count)
{
    remove(path); /* some file systems wait for the disk when a file is cut to nothing and written again */
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static inline int load_model(struct folder *folder, const struct bytes *model, struct weft_graph **ret)
{
    write_file(folder->model, model->data, model->count);
    return weft_load(folder->context, folder->model, ret);
}

/* The model imports to exactly this text (without its first line, "weft 1"), with what the folder's context has; closes
 * the folder. */
static inline void expect_text_in(struct folder folder, const struct bytes *model, const char *expected)
{
    struct weft_graph *graph = NULL;
    char *text = NULL;
    if (load_model(&folder, model, &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(folder.context));
    assert_int_equal(weft_validate(graph), WEFT_OK);
    assert_int_equal(weft_print(graph, &text), WEFT_OK);
    assert_string_equal(text + strcspn(text, "\n") + 1, expected);
    weft_free_text(folder.context, text);
    weft_graph_destroy(graph);
    close_folder(&folder);
}

static inline void expect_text(const struct bytes *model, const char *expected)
{
    expect_text_in(open_folder(), model, expected);
}

/* The model is refused with this status, and the errors contain each of the texts (the list ends with NULL). */
static inline void expect_errors(const struct bytes *model, int status, const char *const *texts)
{
    struct folder folder = open_folder();
    struct weft_graph *graph = NULL;
    const int got = load_model(&folder, model, &graph);
    const char *errors = weft_last_error(folder.context);
    for (; *texts; texts++)
        if (!strstr(errors, *texts))
            fail_msg("\"%s\" is not in: %s", *texts, errors);
    assert_int_equal(got, status);
    assert_null(graph);
    close_folder(&folder);
}

static inline void expect_error(const struct bytes *model, int status, const char *text)
{
    expect_errors(model, status, (const char *const[]){text, NULL});
}

#endif
