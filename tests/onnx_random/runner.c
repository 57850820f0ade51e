/* SPDX-License-Identifier: Apache-2.0 */
/* runner.c: runs ONNX models that another program draws, one after the other, in one process that keeps weft loaded.
 *
 * Reads requests from stdin and writes answers to stdout; numbers are decimal words, elements follow as raw bytes:
 *
 *   case PATH CPU THREADS FLAGS CHOICE TRIALS SYMBOLS  case /tmp/m.onnx avx2 2 0 1 2 1
 *   NAME HINT                                          N 3                        for each symbol
 *   inputs COUNT                                       inputs 1                   for each trial
 *   tensor DTYPE BITS RANK EXTENT… BYTES               tensor 2 32 2 3 4 48       for each input, then its bytes
 *
 *   ready FALLBACKS KERNELS                            or: error STAGE STATUS BYTES, and a message of so many bytes
 *   outputs COUNT                                      for each trial; or an error of its own
 *   tensor DTYPE BITS RANK EXTENT… BYTES               for each output, row-major
 *   done
 *
 * One plan and one execution run all trials of a case, so that what a plan assumes of sizes shows. When all have run,
 * the first runs again: its bits must be the same. Dies of what it cannot read; who asks sees the end of the file. */
#include <weft/weft.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIALS = 16, MOST_PORTS = 256, MOST_CONTEXTS = 32, MOST_SYMBOLS = 64, MOST_MESSAGE = 20000 };

struct trial {
    struct weft_tensor input[MOST_PORTS];
    size_t inputs;
};

struct work {
    char path[4096], cpu[64];
    int threads;
    unsigned flags;
    int choice;             /* that every unit takes, from 1: WEFT_CHOICE */
    size_t trials, symbols;
    struct trial trial[MOST_TRIALS];
    char symbol[MOST_SYMBOLS][64];
    int64_t hint[MOST_SYMBOLS];
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
};

static void die(const char *what)
{
    fprintf(stderr, "runner: %s\n", what);
    exit(3);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void read_tensor(struct weft_tensor *ret)
{
    int dtype, bits, rank;
    size_t bytes;
    if (scanf(" tensor %d %d %d", &dtype, &bits, &rank) != 3 || rank < 0 || rank > WEFT_MAX_RANK)
        die("no tensor where one has to be");
    *ret = (struct weft_tensor){.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        if (scanf("%" SCNd64, &ret->extent[i]) != 1)
            die("an extent is missing");
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        ret->stride[i] = stride;
        stride *= ret->extent[i];
    }
    if (scanf("%zu", &bytes) != 1 || getchar() != '\n')
        die("a tensor without bytes");
    ret->data = malloc(bytes + !bytes);
    if (!ret->data || fread(ret->data, 1, bytes, stdin) != bytes)
        die("a tensor is cut off");
}

/* False at the end of the input. */
static bool read_work(struct work *w)
{
    *w = (struct work){0};
    if (scanf(" case %4095s %63s %d %u %d %zu %zu", w->path, w->cpu, &w->threads, &w->flags, &w->choice, &w->trials,
              &w->symbols) != 7)
        return false;
    if (w->trials > MOST_TRIALS || w->symbols > MOST_SYMBOLS)
        die("more trials or symbols than there is room for");
    for (size_t i = 0; i < w->symbols; i++)
        if (scanf("%63s %" SCNd64, w->symbol[i], &w->hint[i]) != 2)
            die("a symbol is missing");
    for (size_t i = 0; i < w->trials; i++) {
        struct trial *trial = &w->trial[i];
        if (scanf(" inputs %zu", &trial->inputs) != 1 || trial->inputs > MOST_PORTS)
            die("a trial is missing");
        for (size_t k = 0; k < trial->inputs; k++)
            read_tensor(&trial->input[k]);
    }
    return true;
}

/* Contexts by what they were opened with; they live as long as the process. */
static struct weft_context *find_context(const char *cpu, int threads)
{
    static struct { char cpu[64]; int threads; struct weft_context *context; } known[MOST_CONTEXTS];
    static int count;
    for (int i = 0; i < count; i++)
        if (known[i].threads == threads && !strcmp(known[i].cpu, cpu))
            return known[i].context;
    if (count == MOST_CONTEXTS)
        die("too many contexts");
    const struct weft_context_options options = {
        .size = sizeof options, .cpu = strcmp(cpu, "-") ? cpu : NULL, .threads = threads, .prices = ""};
    if (weft_open(&options, &known[count].context) < 0)
        die("weft_open failed");
    strcpy(known[count].cpu, cpu);
    known[count].threads = threads;
    return known[count++].context;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void answer_error(const char *stage, int status, const char *message)
{
    size_t length = strlen(message);
    length = length < MOST_MESSAGE ? length : MOST_MESSAGE;
    printf("error %s %d %zu\n", stage, status, length);
    fwrite(message, 1, length, stdout);
    putchar('\n');
}

static int64_t count_elements(const struct weft_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->extent[i];
    return count;
}

static size_t count_bytes(const struct weft_tensor *t)
{
    return ((size_t)count_elements(t) * weft_dtype_bits(t->dtype) + 7) / 8;
}

/* The elements row-major, whatever the strides. Types below a byte are taken to lie packed. */
static void *pack(const struct weft_tensor *t)
{
    const size_t bytes = count_bytes(t), size = weft_dtype_bits(t->dtype) / 8;
    char *packed = malloc(bytes + !bytes);
    if (!packed)
        die("out of memory");
    if (!size) {
        memcpy(packed, t->data, bytes);
        return packed;
    }
    int64_t index[WEFT_MAX_RANK] = {0};
    const int64_t count = count_elements(t);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = 0;
        for (int axis = 0; axis < t->rank; axis++)
            place += index[axis] * t->stride[axis];
        memcpy(packed + (size_t)i * size, (const char *)t->data + place * (int64_t)size, size);
        for (int axis = t->rank - 1; axis >= 0 && ++index[axis] == t->extent[axis]; axis--)
            index[axis] = 0;
    }
    return packed;
}

static void answer_tensor(const struct weft_tensor *t, const void *packed)
{
    printf("tensor %d %u %d", (int)t->dtype, weft_dtype_bits(t->dtype), (int)t->rank);
    for (int i = 0; i < t->rank; i++)
        printf(" %" PRId64, t->extent[i]);
    printf(" %zu\n", count_bytes(t));
    fwrite(packed, 1, count_bytes(t), stdout);
}

/* --- the work ----------------------------------------------------------------------------------------------------- */

static bool prepare(struct work *w)
{
    w->context = find_context(w->cpu, w->threads);
    int status = weft_load(w->context, w->path, &w->graph);
    for (size_t i = 0; status >= 0 && i < w->symbols; i++) {
        weft_dim dim;
        status = weft_symbol(w->graph, w->symbol[i], 0, INT32_MAX, w->hint[i], &dim);
    }
    if (status < 0) {
        answer_error("load", status, weft_last_error(w->context));
        return false;
    }
    const struct weft_compile_options options = {.size = sizeof options, .flags = w->flags};
    char choice[16];
    snprintf(choice, sizeof choice, "%d", w->choice);
    if (w->choice > 1)
        setenv("WEFT_CHOICE", choice, 1);
    status = weft_compile(w->graph, &options, &w->plan);
    if (w->choice > 1)
        unsetenv("WEFT_CHOICE");
    if (status < 0) {
        answer_error("compile", status, weft_last_error(w->context));
        return false;
    }
    status = weft_execution_create(w->plan, &w->execution);
    if (status < 0)
        answer_error("create", status, weft_last_error(w->context));
    return status >= 0;
}

static bool run_trial(struct work *w, const struct trial *trial)
{
    const size_t inputs = weft_plan_inputs(w->plan);
    if (inputs != trial->inputs) {
        answer_error("bind", WEFT_ERR_ARGUMENT, "the plan has another number of inputs than the model");
        return false;
    }
    int status = WEFT_OK;
    for (size_t i = 0; status >= 0 && i < inputs; i++)
        status = weft_bind_input(w->execution, i, &trial->input[i]);
    if (status >= 0)
        status = weft_run(w->execution);
    if (status < 0)
        answer_error("run", status, weft_execution_error(w->execution));
    return status >= 0;
}

/* Runs a trial and answers with its outputs; `keep` gets their bytes, NULL where the run failed. */
static void answer_trial(struct work *w, const struct trial *trial, void **keep)
{
    if (!run_trial(w, trial))
        return;
    const size_t outputs = weft_plan_outputs(w->plan);
    printf("outputs %zu\n", outputs);
    for (size_t i = 0; i < outputs; i++) {
        struct weft_tensor t;
        if (weft_output(w->execution, i, &t) < 0)
            die("a run without an output");
        void *packed = pack(&t);
        answer_tensor(&t, packed);
        if (keep)
            keep[i] = packed;
        else
            free(packed);
    }
}

static void check_again(struct work *w, void **kept)
{
    if (!kept[0])
        return;
    if (!run_trial(w, &w->trial[0]))
        return;
    for (size_t i = 0; i < weft_plan_outputs(w->plan); i++) {
        struct weft_tensor t;
        if (weft_output(w->execution, i, &t) < 0)
            die("a run without an output");
        void *packed = pack(&t);
        if (memcmp(packed, kept[i], count_bytes(&t)) != 0)
            answer_error("again", WEFT_ERR_INVALID, "the first trial, run again after the others, has other bits");
        free(packed);
    }
}

static void answer(struct work *w)
{
    void *kept[MOST_PORTS] = {0};
    if (prepare(w)) {
        struct weft_statistics statistics = {.size = sizeof statistics};
        weft_execution_statistics(w->execution, &statistics);
        printf("ready %d %d\n", (int)statistics.fallbacks, (int)statistics.kernels);
        for (size_t i = 0; i < w->trials; i++)
            answer_trial(w, &w->trial[i], i == 0 && weft_plan_outputs(w->plan) < MOST_PORTS ? kept : NULL);
        check_again(w, kept);
    }
    puts("done");
    fflush(stdout);
    for (size_t i = 0; i < MOST_PORTS; i++)
        free(kept[i]);
    weft_execution_destroy(w->execution);
    weft_plan_destroy(w->plan);
    weft_graph_destroy(w->graph);
    for (size_t i = 0; i < w->trials; i++)
        for (size_t k = 0; k < w->trial[i].inputs; k++)
            free(w->trial[i].input[k].data);
}

int main(void)
{
    static struct work work;
    while (read_work(&work))
        answer(&work);
    return 0;
}
