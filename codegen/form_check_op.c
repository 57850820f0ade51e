/* SPDX-License-Identifier: Apache-2.0 */
/* form_check_op.c: one instruction of a form: what it reads, from where, over which axes, in which types. */
#include "codegen/form_check.h"

#include "kernels/kernels.h"

static const struct weft_form_op *here(const struct weft_form_checker *c) { return &c->form->op[c->at.op]; }

/* --- what it reads ------------------------------------------------------------------------------------------------ */

static bool is_inside(const struct weft_form_checker *c, uint32_t stage, uint32_t along)
{
    for (; stage != WEFT_FORM_NOWHERE; stage = c->parent[stage])
        if (stage == along)
            return true;
    return along == WEFT_FORM_NOWHERE;
}

/* A value that is made before this op, in a stage whose values this one can still see. */
static bool check_read(struct weft_form_checker *c, uint32_t in)
{
    const struct weft_form *const form = c->form;
    if (in >= c->at.op)
        return weft_form_complain(c, "%s is read before it is made",
                                  in < form->ops ? weft_form_called(c, in) : "a value that there is not");
    const struct weft_form_op *const maker = &form->op[in];
    const uint32_t from = c->stage_of[in];
    const uint16_t missing = maker->axes & (uint16_t)~form->stage[c->at.stage].axes;
    if (!weft_form_has_value(maker))
        return weft_form_complain(c, "a store or next has no value to be read");
    if (from < c->phase->first)
        return weft_form_complain(c, "%s is of another phase: only arrays are seen there", weft_form_called(c, in));
    if (!is_inside(c, c->at.stage, c->parent[from]))
        return weft_form_complain(c, "%s is read behind the along that it was made in", weft_form_called(c, in));
    if (from == c->at.stage && (maker->kind == WEFT_FORM_FOLD || maker->kind == WEFT_FORM_CONTRACT))
        return weft_form_complain(c, "%s is read before it is made: it is whole behind its stage",
                                  weft_form_called(c, in));
    return !missing || weft_form_complain(c, "%s has axis %s, which this stage does not go over",
                                          weft_form_called(c, in), weft_form_axis_name(c, missing));
}

/* --- axes and types ----------------------------------------------------------------------------------------------- */

/* FOLD, SCAN, CONTRACT. Tiles of a length that the back end chooses have no sum of their own. */
static bool check_over(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    const struct weft_form_op *const op = here(c);
    if (!op->over || (op->kind == WEFT_FORM_SCAN && op->over & (op->over - 1)))
        return weft_form_complain(c, "%s goes over %s", weft_form_called(c, c->at.op),
                                  op->over ? "several axes, but a scan goes over one" : "no axis");
    for (unsigned k = 0; k < op->ins; k++) {
        const uint16_t lacking = op->over & (uint16_t)~form->op[op->in[k]].axes;
        if (lacking)
            return weft_form_complain(c, "%s goes over axis %s, which %s does not have",
                                      weft_form_called(c, c->at.op), weft_form_axis_name(c, lacking),
                                      weft_form_called(c, op->in[k]));
    }
    for (unsigned a = 0; a < form->axes; a++)
        if (op->over & c->phase->axes & 1u << a && weft_dim_is(c->phase->by[a], 0))
            return weft_form_complain(c, "%s goes over axis %s, which the phase cuts where the back end likes",
                                      weft_form_called(c, c->at.op), form->axis[a].name);
    return true;
}

static bool check_types(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    const struct weft_form_op *const op = here(c);
    const int from = form->op[op->in[0]].dtype;
    const char *const word = op->kind == WEFT_FORM_CONTRACT ? "contract" : weft_form_fold_words[op->fold];
    if (op->kind == WEFT_FORM_CONTRACT && form->op[op->in[1]].dtype != from)
        return weft_form_complain(c, "%s: contract of %s and %s", weft_form_called(c, c->at.op), weft_dtype_name(from),
                                  weft_dtype_name(form->op[op->in[1]].dtype));
    const bool fits = op->kind == WEFT_FORM_SCAN
                          ? op->dtype == from && weft_along_supports(WEFT_K_CUMSUM, from)
                          : weft_reduce_supports(from, op->dtype, 0);
    return fits ||
           weft_form_complain(c, "%s: no %s makes %s of %s", weft_form_called(c, c->at.op), word,
                              weft_dtype_name(op->dtype), weft_dtype_name(from));
}

/* select has a condition in front; all other operands of an op share a type. */
static bool check_word(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    const struct weft_form_op *const op = here(c);
    const int opcode = op->word ? weft_form_opcode(op->word) : 0;
    unsigned least;
    if (!opcode || !(weft_ops[opcode].traits & WEFT_ELEMENTWISE))
        return weft_form_complain(c, "%s: no elementwise op is called '%s'", weft_form_called(c, c->at.op),
                                  op->word ? op->word : "");
    if (op->ins != (unsigned)weft_ops[opcode].min_operands)
        return weft_form_complain(c, "%s: %s takes %d operands, not %u", weft_form_called(c, c->at.op), op->word,
                                  weft_ops[opcode].min_operands, op->ins);
    const unsigned most = weft_form_params(op->word, &least);
    for (unsigned k = most; k < 2; k++)
        if (op->param[k] != 0)
            return weft_form_complain(c, "%s: %s takes %u numbers in parentheses", weft_form_called(c, c->at.op),
                                      op->word, most);
    const bool select = opcode == WEFT_OP_select;
    const int from = form->op[op->in[select]].dtype;
    bool fits = !select || form->op[op->in[0]].dtype == WEFT_BOOL;
    for (unsigned k = select; k < op->ins; k++)
        fits &= form->op[op->in[k]].dtype == from;
    return (fits && weft_strip_find(op->word, from, op->dtype, 0)) ||
           weft_form_complain(c, "%s: no strip kernel of %s makes %s of such types", weft_form_called(c, c->at.op),
                              op->word, weft_dtype_name(op->dtype));
}

/* --- arrays, carried values --------------------------------------------------------------------------------------- */

static bool check_array(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    const struct weft_form_op *const op = here(c);
    if (op->array >= form->arrays || op->map >= form->maps)
        return weft_form_complain(c, "a load or store of an array or by a map that there is not");
    const struct weft_form_array *const array = &form->array[op->array];
    const int dtype = op->kind == WEFT_FORM_STORE ? form->op[op->in[0]].dtype : op->dtype;
    if (dtype != array->dtype || op->dtype != dtype)
        return weft_form_complain(c, "%%%s has elements of %s, not %s", array->name, weft_dtype_name(array->dtype),
                                  weft_dtype_name(dtype));
    if (!weft_form_check_access(c))
        return false;
    if (op->kind == WEFT_FORM_STORE)
        return array->use == WEFT_FORM_IN ? weft_form_complain(c, "%%%s is an input and cannot be stored", array->name)
                                          : weft_form_check_once(c);
    if (array->use == WEFT_FORM_IN)
        return true;
    if (c->stored[op->array] == c->phase_id + 1)
        return weft_form_complain(c, "%%%s is loaded in a phase that stores it", array->name);
    return c->stored[op->array] ||
           weft_form_complain(c, "%%%s is loaded, but no earlier phase stores it", array->name);
}

/* A BEGIN stands directly before its ALONG. */
static bool check_carry(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    const unsigned axis = form->stage[c->at.stage + 1].axis; /* form_check.c has seen that there is one */
    if (here(c)->axes >> form->axes)
        return weft_form_complain(c, "%s has axes that there are not", weft_form_called(c, c->at.op));
    return !(here(c)->axes >> axis & 1) ||
           weft_form_complain(c, "%s is carried along axis %s and cannot have it", weft_form_called(c, c->at.op),
                              form->axis[axis].name);
}

static bool check_next(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    const struct weft_form_op *const op = here(c);
    const uint32_t carry = op->in[0];
    const char *const name = weft_form_called(c, carry);
    if (form->op[carry].kind != WEFT_FORM_CARRY)
        return weft_form_complain(c, "%s is not carried, so it has no next", name);
    if (c->parent[c->at.stage] != c->stage_of[carry] + 1)
        return weft_form_complain(c, "the next of %s stands outside of the along that carries it", name);
    if (c->is_next[carry])
        return weft_form_complain(c, "%s has a second next", name);
    c->is_next[carry] = true;
    if (form->op[carry].axes != form->stage[c->at.stage].axes)
        return weft_form_complain(c, "the next of %s stands in a stage of other axes than it has", name);
    return (form->op[op->in[1]].dtype == form->op[carry].dtype && op->dtype == form->op[carry].dtype) ||
           weft_form_complain(c, "%s is %s, but its next is %s", name, weft_dtype_name(form->op[carry].dtype),
                              weft_dtype_name(form->op[op->in[1]].dtype));
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static bool check_kind(struct weft_form_checker *c)
{
    static const uint8_t least[] = {
        [WEFT_FORM_MAP] = 1, [WEFT_FORM_FOLD] = 1, [WEFT_FORM_SCAN] = 1, [WEFT_FORM_CONTRACT] = 2,
        [WEFT_FORM_NEXT] = 2, [WEFT_FORM_STORE] = 1};
    const struct weft_form_op *const op = here(c);
    if (op->kind > WEFT_FORM_STORE || !weft_dtype_name(op->dtype) || op->fold >= WEFT_FORM_FOLDS)
        return weft_form_complain(c, "an instruction that there is not, or of no element type");
    const unsigned most = op->kind == WEFT_FORM_MAP || op->kind == WEFT_FORM_LOAD ? WEFT_FORM_INS : least[op->kind];
    if (op->ins < least[op->kind] || op->ins > most)
        return weft_form_complain(c, "an instruction reads %u values, not %u", op->ins, least[op->kind]);
    const int stage = c->form->stage[c->at.stage].kind;
    const bool begins = op->kind == WEFT_FORM_CARRY, multiplies = op->kind == WEFT_FORM_CONTRACT;
    if (begins != (stage == WEFT_FORM_BEGIN))
        return weft_form_complain(c, "`begin` has carries only, and nothing else has them");
    if (stage == WEFT_FORM_MULTIPLY ? !multiplies && op->kind != WEFT_FORM_LOAD : multiplies)
        return weft_form_complain(c, "a contract stands behind loads in a stage of its own");
    if (op->falls_back && (op->kind != WEFT_FORM_LOAD || !op->ins))
        return weft_form_complain(c, "only loads fall back on another value");
    if (op->kind != WEFT_FORM_SCAN && (op->exclusive || op->reverse))
        return weft_form_complain(c, "only scans are exclusive or reversed");
    return op->kind != WEFT_FORM_SCAN || op->fold != WEFT_K_MEAN ||
           weft_form_complain(c, "%s: there is no scan of means", weft_form_called(c, c->at.op));
}

bool weft_form_check_op(struct weft_form_checker *c)
{
    const struct weft_form_op *const op = here(c);
    if (!check_kind(c))
        return false;
    for (unsigned k = 0; k < op->ins; k++)
        if (!check_read(c, op->in[k]))
            return false;
    const bool folds = op->kind == WEFT_FORM_FOLD || op->kind == WEFT_FORM_SCAN || op->kind == WEFT_FORM_CONTRACT;
    if (folds && (!check_over(c) || !check_types(c)))
        return false;
    if ((op->kind == WEFT_FORM_LOAD || op->kind == WEFT_FORM_STORE) && !check_array(c))
        return false;
    if ((op->kind == WEFT_FORM_MAP && !check_word(c)) || (op->kind == WEFT_FORM_CARRY && !check_carry(c)) ||
        (op->kind == WEFT_FORM_NEXT && !check_next(c)))
        return false;
    const uint16_t axes = weft_form_value_axes(c->form, op, c->form->stage[c->at.stage].axes);
    const uint16_t wrong = axes ^ op->axes;
    return !wrong ||
           weft_form_complain(c, "%s %s axis %s", weft_form_has_value(op) ? weft_form_called(c, c->at.op) : "the point",
                              axes & wrong ? "lacks" : "does not have", weft_form_axis_name(c, wrong));
}
