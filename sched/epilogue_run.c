/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue_run.c: epilogues of bound steps, and of steps that run. The contract: epilogue.h. */
#include "codegen/emit.h"
#include "codegen/strips.h"
#include "sched/epilogue.h"

enum { LINE = 64, HEADER = 64 }; /* what is shared begins with bytes that stay zero (sched/step.h) */

/* An array with the dimensions of the contraction's result, of which it has `dim`, or -1. */
static struct weft_tensor as_contraction(const struct weft_bind *bind, const struct weft_tensor *array,
                                         const int8_t *dim)
{
    struct weft_tensor tensor = weft_bind_tensor(bind, weft_result(bind->graph, bind->step->node, 0));
    tensor.data = array->data;
    for (int d = 0; d < tensor.rank; d++)
        tensor.stride[d] = dim[d] < 0 ? 0 : array->stride[dim[d]];
    for (int d = tensor.rank - 1; d >= 0; d--) /* of extent 1: any will do, best one that follows what lies behind it */
        if (dim[d] < 0)
            tensor.stride[d] = d == tensor.rank - 1 ? 1 : tensor.stride[d + 1] * tensor.extent[d + 1];
    return tensor;
}

/* Elements side by side, axes in the order of those of the first result; those that it lacks are outermost. */
static struct weft_tensor aside(const struct weft_bind *bind)
{
    const int8_t *const dim = bind->step->epilogue->out_dim;
    struct weft_tensor tensor = weft_bind_tensor(bind, weft_result(bind->graph, bind->step->node, 0));
    int order[WEFT_MAX_RANK];
    int64_t along[WEFT_MAX_RANK], stride = 1;
    for (int d = 0; d < tensor.rank; d++) {
        int at = d;
        along[d] = dim[d] < 0 ? INT64_MAX : bind->out.stride[dim[d]];
        for (; at > 0 && along[order[at - 1]] < along[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int i = tensor.rank - 1; i >= 0; i--) {
        tensor.stride[order[i]] = stride;
        stride *= tensor.extent[order[i]] > 1 ? tensor.extent[order[i]] : 1;
    }
    return tensor;
}

struct weft_tensor weft_epilogue_result(const struct weft_bind *bind)
{
    const struct weft_epilogue *const e = bind->step->epilogue;
    return !e ? bind->out : e->is_aside ? aside(bind) : as_contraction(bind, &bind->out, e->out_dim);
}

size_t weft_epilogue_reserve(struct weft_bind *bind)
{
    if (!bind->step->epilogue || !bind->step->epilogue->is_aside)
        return 0;
    const struct weft_tensor tensor = weft_epilogue_result(bind);
    const size_t before = bind->shared > HEADER ? bind->shared : HEADER, at = (before + LINE - 1) / LINE * LINE;
    bind->shared = at + (size_t)weft_tensor_elements(&tensor) * sizeof(float);
    return at;
}

float *weft_epilogue_data(const struct weft_call *call, size_t at)
{
    const struct weft_epilogue *const e = call->step->epilogue;
    return e && e->is_aside ? (float *)((char *)call->shared + at) : call->out;
}

bool weft_epilogue_residual_tensor(const struct weft_bind *bind, struct weft_tensor *ret)
{
    const struct weft_epilogue *const e = bind->step->epilogue;
    if (!e || !e->residual.id)
        return false;
    const struct weft_tensor residual = weft_bind_tensor(bind, e->residual);
    *ret = as_contraction(bind, &residual, e->r_dim);
    return true;
}

int weft_epilogue_dim(const struct weft_step *step, int dim)
{
    return step->epilogue ? step->epilogue->out_dim[dim] : dim;
}

bool weft_epilogue_folds(const struct weft_bind *bind, int64_t ret_stride[2])
{
    const struct weft_epilogue *const e = bind->step->epilogue;
    if (!e || !e->folded.id)
        return false;
    const struct weft_tensor folded = weft_bind_tensor(bind, e->folded);
    for (int i = 0; i < 2; i++)
        ret_stride[i] = e->fold_dim[i] < 0 ? 0 : folded.stride[e->fold_dim[i]];
    return true;
}

int64_t weft_epilogue_bias_stride(const struct weft_bind *bind)
{
    const struct weft_epilogue *const e = bind->step->epilogue;
    const struct weft_tensor bias = weft_bind_tensor(bind, e->bias);
    int64_t stride = 0;
    for (int d = 0; d < bias.rank; d++)
        stride = bias.stride[d] != 0 && bias.extent[d] != 1 ? bias.stride[d] : stride;
    return stride;
}

const float *weft_epilogue_bias(const struct weft_call *call)
{
    const struct weft_epilogue *const e = call->step->epilogue;
    return e && e->bias.id ? call->tensor(call, e->bias).data : NULL;
}

const float *weft_epilogue_residual(const struct weft_call *call)
{
    const struct weft_epilogue *const e = call->step->epilogue;
    return e && e->residual.id ? call->tensor(call, e->residual).data : NULL;
}

float *weft_epilogue_folded(const struct weft_call *call)
{
    return call->tensor(call, call->step->epilogue->folded).data;
}

size_t weft_epilogue_bytes(const struct weft_step *step)
{
    return step->epilogue && step->epilogue->form ? weft_strips_bytes(step->epilogue->form) : 0;
}

/* The raw results, with the dimensions that the form knows. */
static struct weft_tensor raw_results(const struct weft_epilogue *e, const struct weft_tensor *results, int rank)
{
    const struct weft_tensor result = *results;
    struct weft_tensor raw = {.dtype = WEFT_F32, .rank = rank};
    for (int d = 0; d < rank; d++)
        raw.extent[d] = 1;
    for (int d = 0; d < result.rank; d++)
        if (e->c_dim[d] >= 0) {
            raw.extent[e->c_dim[d]] = result.extent[d];
            raw.stride[e->c_dim[d]] = result.stride[d];
        }
    return raw;
}

/* `results`: the head's, where they stand. */
static struct weft_program *bind_program(struct weft_bind *bind, const struct weft_tensor *results, const int8_t *order,
                                         int rows, int columns, void *memory, size_t *ret_scratch)
{
    const struct weft_epilogue *const e = bind->step->epilogue;
    if (!e || !e->form)
        return NULL;
    struct weft_tensor tensor[WEFT_PROGRAM_ARGUMENTS];
    struct weft_strips_box box = {.array = e->c};
    for (uint32_t i = 0; i < e->form->arrays; i++)
        tensor[i] = i == e->c ? raw_results(e, results, e->form->array[i].rank)
                              : weft_bind_tensor(bind, e->form->array[i].value);
    for (int i = 0; i < rows + columns; i++)
        if (e->c_dim[order[i]] >= 0) {
            box.dim[box.rows + box.columns] = e->c_dim[order[i]];
            box.rows += i < rows;
            box.columns += i >= rows;
        }
    struct weft_program *const program =
        (e->rows ? weft_strips_make_rows : weft_strips_make_pieces)(e->form, &box, weft_bind_cpu(bind), bind->symbols,
                                                                    tensor, memory);
    program->shape = weft_emit_refuse(e->form, program) ? 0 : weft_emit_shape(program);
    *ret_scratch = (bind->scratch + LINE - 1) / LINE * LINE;
    bind->scratch = *ret_scratch + program->scratch;
    return program;
}

struct weft_program *weft_epilogue_bind(struct weft_bind *bind, const int8_t *order, int rows, int columns,
                                        void *memory, size_t *ret_scratch)
{
    const struct weft_tensor results = weft_epilogue_result(bind);
    return bind_program(bind, &results, order, rows, columns, memory, ret_scratch);
}

struct weft_program *weft_epilogue_bind_apart(struct weft_bind *bind, const int64_t *stride, const int8_t *order,
                                              int rows, int columns, void *memory, size_t *ret_scratch)
{
    struct weft_tensor results = weft_bind_tensor(bind, weft_result(bind->graph, bind->step->node, 0));
    for (int d = 0; d < results.rank; d++)
        results.stride[d] = stride[d];
    return bind_program(bind, &results, order, rows, columns, memory, ret_scratch);
}

void weft_epilogue_begin(struct weft_epilogue_run *run, const struct weft_program *program, size_t scratch,
                         size_t aside, struct weft_call *call)
{
    const struct weft_epilogue *const e = call->step->epilogue;
    for (uint32_t i = 0; i < e->form->arrays; i++)
        run->argument[i] =
            i == e->c ? weft_epilogue_data(call, aside) : call->tensor(call, e->form->array[i].value).data;
    run->row = 0;
    weft_program_code *const code = weft_tier_code(call->step->tier, program);
    run->scratch = (char *)call->scratch + scratch;
    if (!e->rows) {
        weft_program_begin_pieces(&run->pieces, program, code, run->argument, run->scratch);
        return;
    }
    run->pieces.program = *program;
    run->pieces.program.code = code;
}

void weft_epilogue_run_rows(struct weft_epilogue_run *run, int64_t row, int64_t rows)
{
    weft_program_run_points(&run->pieces.program, run->argument, run->scratch, row, row + rows);
}
