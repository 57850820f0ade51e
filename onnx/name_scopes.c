/* SPDX-License-Identifier: Apache-2.0 */
/* name_scopes.c: which modules of the source a node stands in, as PyTorch's exporter notes it beside the node: a list
 * in Python's notation, the outermost module first, the operation itself last.
 *
 *   ['', 'encoder', 'encoder.layer.0', 'add_3']   →   "encoder\nencoder.layer.0"
 *
 * Names of other exporters hold their scopes themselves ("/encoder/layer.0/Add"), and need no note. */
#include "onnx/import.h"

#include <string.h>

/* The next string of the list; false behind the last. Escapes stay as they are. */
static bool next_string(struct onnx_string *rest, struct onnx_string *ret)
{
    size_t i = 0;
    while (i < rest->length && rest->data[i] != '\'' && rest->data[i] != '"')
        i++;
    const size_t first = i + 1;
    if (first >= rest->length)
        return false;
    const char *const end = memchr(rest->data + first, rest->data[i], rest->length - first);
    if (!end)
        return false;
    *ret = (struct onnx_string){rest->data + first, (size_t)(end - rest->data) - first};
    *rest = (struct onnx_string){end + 1, rest->length - (size_t)(end + 1 - rest->data)};
    return true;
}

void weft_onnx_note_scopes(struct onnx_importer *importer, const struct onnx_node *node, const char *name)
{
    struct weft_text path = {.context = importer->reader.context, .arena = importer->reader.arena};
    struct onnx_string rest = node->scopes, one = {0}, next;
    while (next_string(&rest, &next)) {
        if (one.length && path.length)
            weft_text_add(&path, "\n");
        weft_text_addn(&path, one.length ? one.data : "", one.length);
        one = next;
    }
    if (name && path.length)
        weft_note_scope(importer->root, name, path.data);
}
