/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c: which known word is nearest to one that is unknown.
 *
 * Two ways to be near, and the better one counts:
 *   letters   few edits (a letter more, less, another, two swapped) lead from one to the other, case and separators
 *             left out: Conv and conv, MatMul and matmul, axs and axes
 *   parts     the parts between separators, digits and changes of case are the same in any order, or one begins like
 *             the other: constant_fold and fold_const, BatchNormalization and batch_norm; ReduceSum has all of sum
 * A word that is short has to be nearer, since everything is a few edits away from it. */
#include "ir/suggest.h"

#include "ir/ir.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LETTERS = WEFT_SUGGEST_LETTERS, PARTS = 8, MOST_VALUES = 4096 };

static bool begins_part(const char *word, size_t i)
{
    const unsigned char here = (unsigned char)word[i], before = i ? (unsigned char)word[i - 1] : 0;
    return !isalnum(before) || (isupper(here) && !isupper(before)) || !isdigit(here) != !isdigit(before);
}

static struct weft_spelling spell(const char *word, size_t length)
{
    struct weft_spelling s = {.parts = 0};
    for (size_t i = length > LETTERS ? length - LETTERS : 0; i < length; i++) {
        if (!isalnum((unsigned char)word[i]))
            continue;
        if (begins_part(word, i) && s.parts < PARTS)
            s.part[s.parts++] = s.letters;
        s.letter[s.letters++] = (char)tolower((unsigned char)word[i]);
    }
    s.part[s.parts] = s.letters;
    return s;
}

/* The usual table, of which three rows are kept. */
int weft_count_edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const int m = a_length < LETTERS ? (int)a_length : LETTERS, n = b_length < LETTERS ? (int)b_length : LETTERS;
    a += a_length - (size_t)m;
    b += b_length - (size_t)n;
    int row[3][LETTERS + 1];
    for (int j = 0; j <= n; j++)
        row[0][j] = j;
    for (int i = 1; i <= m; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= n; j++) {
            const int other = last[j - 1] + (a[i - 1] != b[j - 1]);
            int least = last[j] + 1 < now[j - 1] + 1 ? last[j] + 1 : now[j - 1] + 1;
            least = other < least ? other : least;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < least)
                least = before[j - 2] + 1;
            now[j] = least;
        }
    }
    return row[m % 3][n];
}

/* 0: the same letters; more than 1: nothing in common that counts. */
static double by_letters(const struct weft_spelling *a, const struct weft_spelling *b)
{
    if (a->letters > b->letters)
        return by_letters(b, a);
    const int allowed = a->letters < 3 ? 0 : a->letters < 8 ? 1 : a->letters / 4;
    const double inside =
        a->letters >= 4 && memmem(b->letter, (size_t)b->letters, a->letter, (size_t)a->letters) ? 0.5 : 2;
    if (b->letters - a->letters > allowed)
        return inside;
    const int edits = weft_count_edits(a->letter, (size_t)a->letters, b->letter, (size_t)b->letters);
    return edits == 0 ? 0 : edits <= allowed ? 0.1 + 0.8 * edits / a->letters : inside;
}

static bool is_like(const struct weft_spelling *a, int i, const struct weft_spelling *b, int j)
{
    const char *x = a->letter + a->part[i], *y = b->letter + b->part[j];
    const int m = a->part[i + 1] - a->part[i], n = b->part[j + 1] - b->part[j], shorter = m < n ? m : n;
    return memcmp(x, y, (size_t)shorter) == 0 ? m == n || shorter >= 3
                                              : shorter >= 4 && weft_count_edits(x, (size_t)m, y, (size_t)n) <= 1;
}

/* Letters of a in parts that b has as well. */
static int count_shared(const struct weft_spelling *a, const struct weft_spelling *b)
{
    int shared = 0;
    for (int i = 0; i < a->parts; i++)
        for (int j = 0; j < b->parts; j++)
            if (is_like(a, i, b, j)) {
                shared += a->part[i + 1] - a->part[i];
                break;
            }
    return shared;
}

static double by_parts(const struct weft_spelling *word, const struct weft_spelling *candidate)
{
    const int in_word = count_shared(word, candidate), in_candidate = count_shared(candidate, word);
    const int letters = word->letters + candidate->letters;
    const double share = (double)(in_word + in_candidate) / letters;
    if (share < 0.45 || (in_candidate < candidate->letters && in_word < word->letters))
        return 2; /* both have something that the other has not */
    return share == 1 ? 0.05 : in_candidate == candidate->letters ? 0.35 - 0.2 * share : 1 - 0.5 * share;
}

void weft_suggest_open(struct weft_suggest *suggest, const char *word, size_t length)
{
    *suggest = (struct weft_suggest){.distance = 2, .word = spell(word, length)};
}

/* `name` is what it is known by. */
static void offer(struct weft_suggest *suggest, const char *name, size_t name_length, const char *candidate,
                  size_t length)
{
    const struct weft_spelling other = spell(name, name_length);
    if (suggest->word.letters == 0 || other.letters == 0)
        return;
    const double letters = by_letters(&suggest->word, &other), parts = by_parts(&suggest->word, &other),
                 distance = letters < parts ? letters : parts;
    if (distance >= suggest->distance)
        return;
    suggest->distance = distance;
    suggest->best = candidate;
    suggest->length = (int)(length < 128 ? length : 128);
}

void weft_suggest_offern(struct weft_suggest *suggest, const char *candidate, size_t length)
{
    offer(suggest, candidate, length, candidate, length);
}

void weft_suggest_offer(struct weft_suggest *suggest, const char *candidate)
{
    weft_suggest_offern(suggest, candidate, strlen(candidate));
}

void weft_suggest_offer_as(struct weft_suggest *suggest, const char *alias, const char *candidate)
{
    offer(suggest, alias, strlen(alias), candidate, strlen(candidate));
}

const char *weft_suggest_text(struct weft_suggest *suggest, const char *sigil)
{
    suggest->text[0] = '\0';
    if (suggest->distance <= 1)
        snprintf(suggest->text, sizeof suggest->text, " (did you mean %s%.*s?)", sigil, suggest->length,
                 suggest->best);
    return suggest->text;
}

/* --- words of the language ---------------------------------------------------------------------------------------- */

/* Names that other languages have for ops and dtypes, where no rule of spelling finds them. */
static const struct alias {
    const char *alias, *name;
} op_aliases[] = {
    {"broadcast", "bcast"}, {"expand", "bcast"},    {"broadcast_in_dim", "bcast"}, {"gemm", "matmul"},
    {"linear", "matmul"},   {"dense", "matmul"},    {"dot", "matmul"},             {"permute", "transpose"},
    {"view", "reshape"},    {"flatten", "reshape"}, {"squeeze", "reshape"},        {"unsqueeze", "reshape"},
    {"where", "select"},    {"argsort", "sort"},    {"range", "iota"},             {"arange", "iota"},
    {"div_floor", "floor_div"}, {"negative", "neg"}, {"constant", "const"},        {"scan", "loop"},
    {"upsample", "resize"}, {"take", "gather"},     {"power", "pow"},              {"reciprocal", "recip"},
}, dtype_aliases[] = {
    {"double", "f64"},  {"float64", "f64"}, {"fp64", "f64"},   {"float", "f32"},     {"float32", "f32"},
    {"fp32", "f32"},    {"half", "f16"},    {"float16", "f16"}, {"fp16", "f16"},     {"bfloat16", "bf16"},
    {"int64", "i64"},   {"long", "i64"},    {"int32", "i32"},  {"int", "i32"},       {"int16", "i16"},
    {"short", "i16"},   {"int8", "i8"},     {"char", "i8"},    {"uint64", "u64"},    {"uint32", "u32"},
    {"uint16", "u16"},  {"uint8", "u8"},    {"byte", "u8"},    {"boolean", "bool"},  {"int4", "i4"},
    {"uint4", "u4"},    {"float8e4m3", "f8e4m3"}, {"float8e5m2", "f8e5m2"},
};

#define OFFER_ALIASES(suggest, table) \
    for (size_t i = 0; i < sizeof(table) / sizeof *(table); i++) \
        weft_suggest_offer_as((suggest), (table)[i].alias, (table)[i].name)

const char *weft_suggest_op(struct weft_suggest *suggest, const char *word, size_t length)
{
    weft_suggest_open(suggest, word, length);
    for (int op = 1; op < WEFT_OP_COUNT; op++)
        weft_suggest_offer(suggest, weft_ops[op].name);
    OFFER_ALIASES(suggest, op_aliases);
    return weft_suggest_text(suggest, "");
}

const char *weft_suggest_attr(struct weft_suggest *suggest, int opcode, const char *word, size_t length)
{
    weft_suggest_open(suggest, word, length);
    for (int key = 1; key < WEFT_ATTR_COUNT; key++)
        if (opcode == 0 || weft_attr_spec_find(opcode, key))
            weft_suggest_offer(suggest, weft_attr_names[key]);
    return weft_suggest_text(suggest, "");
}

const char *weft_suggest_dtype(struct weft_suggest *suggest, const char *word, size_t length)
{
    weft_suggest_open(suggest, word, length);
    for (int dtype = 1; weft_dtype_name(dtype); dtype++)
        weft_suggest_offer(suggest, weft_dtype_name(dtype));
    OFFER_ALIASES(suggest, dtype_aliases);
    return weft_suggest_text(suggest, "");
}

const char *weft_suggest_among(struct weft_suggest *suggest, const char *words, const char *word, size_t length)
{
    weft_suggest_open(suggest, word, length);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        const size_t here = strcspn(at, " ");
        weft_suggest_offern(suggest, at, here);
        at += here;
    }
    return weft_suggest_text(suggest, "");
}

const char *weft_suggest_value(struct weft_suggest *suggest, const struct weft_graph *graph, const char *word,
                               size_t length)
{
    weft_suggest_open(suggest, word, length);
    for (uint32_t i = 1; i < graph->values && i < MOST_VALUES; i++)
        if (graph->value[i].name && !graph->node[graph->value[i].def.id].dead)
            weft_suggest_offer(suggest, graph->value[i].name);
    return weft_suggest_text(suggest, "%");
}

const char *weft_suggest_symbol(struct weft_suggest *suggest, const struct weft_dims *dims, const char *word,
                                size_t length)
{
    weft_suggest_open(suggest, word, length);
    for (uint32_t s = 0; s < weft_symbol_count(dims); s++)
        weft_suggest_offer(suggest, weft_symbol_at(dims, s)->name);
    return weft_suggest_text(suggest, "");
}
