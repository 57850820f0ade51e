/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory.c: what plans of one model take, in one process and in a second one that loads the same file.
 * usage: bench_process_memory MODEL
 *
 * The program loads the model, makes a plan and runs it, makes a second plan and runs that, and then starts itself once
 * more while it is alive. Each line has, in MiB: memory that the process has for itself (Private of smaps_rollup), its
 * part that no file backs, and what it shares with others (Shared), all beyond what it had before weft was opened; then
 * what the statistics say of the plan that was made last. */
#include "weft/weft.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct usage {
    long private, anonymous, shared; /* KiB */
};

static struct usage read_usage(void)
{
    struct usage usage = {0};
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    long number;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "Private_Clean: %ld", &number) == 1 || sscanf(line, "Private_Dirty: %ld", &number) == 1)
            usage.private += number;
        else if (sscanf(line, "Shared_Clean: %ld", &number) == 1 || sscanf(line, "Shared_Dirty: %ld", &number) == 1)
            usage.shared += number;
        else if (sscanf(line, "Anonymous: %ld", &number) == 1)
            usage.anonymous = number;
    }
    if (file)
        fclose(file);
    return usage;
}

static void must(struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", context ? weft_last_error(context) : weft_status_text(status));
    exit(1);
}

/* Zeros for each input, an extent of 1 for each symbol. */
static void bind_zeros(const struct weft_plan *plan, struct weft_execution *e)
{
    for (size_t i = 0; i < weft_plan_inputs(plan); i++) {
        struct weft_port port = {.size = sizeof port};
        must(NULL, weft_plan_input(plan, i, &port));
        struct weft_tensor tensor = {.dtype = port.dtype, .rank = port.rank};
        int64_t elements = 1;
        for (int axis = port.rank - 1; axis >= 0; axis--) {
            tensor.extent[axis] = port.extent[axis] < 0 ? 1 : port.extent[axis];
            tensor.stride[axis] = elements;
            elements *= tensor.extent[axis];
        }
        tensor.data = calloc((size_t)elements, (weft_dtype_bits(port.dtype) + 7) / 8); /* until the program ends */
        must(NULL, weft_bind_input(e, i, &tensor));
    }
}

static struct weft_execution *run_plan(struct weft_context *context, const struct weft_graph *graph)
{
    struct weft_plan *plan;
    struct weft_execution *e;
    must(context, weft_compile(graph, NULL, &plan));
    must(NULL, weft_execution_create(plan, &e));
    bind_zeros(plan, e);
    if (weft_run(e) < 0) {
        fprintf(stderr, "%s\n", weft_execution_error(e));
        exit(1);
    }
    weft_plan_destroy(plan);
    return e;
}

static void tell(const char *when, struct usage before, const struct weft_execution *e)
{
    const struct usage now = read_usage();
    struct weft_statistics s = {.size = sizeof s};
    printf("%-28s private %7.1f  of that anonymous %7.1f  shared %7.1f", when,
           (double)(now.private - before.private) / 1024, (double)(now.anonymous - before.anonymous) / 1024,
           (double)(now.shared - before.shared) / 1024);
    if (e && weft_execution_statistics(e, &s) == WEFT_OK)
        printf("  arena %.1f  packs %.1f  shared packs %.1f  mapped packs %.1f", (double)s.arena_bytes / (1 << 20),
               (double)s.constant_bytes / (1 << 20), (double)s.shared_bytes / (1 << 20),
               (double)s.mapped_bytes / (1 << 20));
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const struct usage before = read_usage();
    const bool second = argc == 3 && strcmp(argv[2], "--second") == 0;
    struct weft_context *context;
    struct weft_graph *graph;
    if (argc < 2)
        return 2;
    must(NULL, weft_open(NULL, &context));
    must(context, weft_load(context, argv[1], &graph));
    struct weft_execution *first = run_plan(context, graph);
    tell(second ? "another process, one plan" : "one plan", before, first);
    if (second)
        return 0;
    struct weft_execution *other = run_plan(context, graph);
    tell("two plans", before, other);
    weft_graph_destroy(graph);
    pid_t child;
    char second_option[] = "--second", *const arguments[] = {argv[0], argv[1], second_option, NULL};
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0)
        return 1;
    waitpid(child, NULL, 0);
    weft_execution_destroy(first);
    weft_execution_destroy(other);
    weft_close(context);
    return 0;
}
