/* SPDX-License-Identifier: Apache-2.0 */
/* report.c: weft report: all that is known of a model and its plan as one file of HTML, which loads nothing.
 *
 *   report.html (embedded)   @BEFORE@, @AFTER@   the model as read and the plan with times, as SVG by Graphviz
 *                            @DATA@              what weft explain --json --measure says, the trace of weft run
 *                                                --trace, the C of generated kernels, scopes and layers that repeat
 *                                                (report_scopes.c), the rates of the machine
 *
 * The script in the page finds a box by its name, which is that of the value, and shows what the data say of it. */
#include "ir/file.h"
#include "tools/calibrate.h"
#include "tools/explain.h"
#include "tools/report.h"
#include "tools/tools.h"

#ifdef WEFT_HAVE_VIZ
#include "weft/viz.h"
#endif

#include <errno.h>
#include <string.h>

struct report {
    struct weft_model_options options;
    const char *to;
    bool measure;              /* the machine's rates */
    struct calibrate_rates rates;
    struct weft_model model;
    struct weft_profile profile;
    struct weft_arena arena;
    FILE *file;
    const char *data;          /* the script's constants */
};

/* --- data --------------------------------------------------------------------------------------------------------- */

/* A script ends at "</script", wherever that stands: "<\/" is the same string to it. `lines`: objects a line, as the
 * elements of a list. */
static void add_script(struct weft_text *to, const char *text, bool lines)
{
    for (const char *s = text; *s; s++)
        if (s[0] == '<' && s[1] == '/')
            weft_text_add(to, "<\\/"), s++;
        else if (lines && *s == '\n')
            weft_text_add(to, ",\n");
        else
            weft_text_addn(to, s, 1);
}

static void add_explanation(struct report *r, struct weft_text *data)
{
    struct explain e = {.context = r->model.context, .arena = &r->arena, .path = r->options.path,
                        .from = r->model.graph, .plan = r->model.plan,
                        .symbols = weft_hint_symbols(weft_plan_graph(r->model.plan), &r->arena),
                        .measured = &r->profile};
    struct weft_text text = {.context = r->model.context, .arena = &r->arena};
    explain_collect(&e);
    explain_print_json(&e, NULL, &text);
    weft_text_add(data, "const explain = [\n");
    add_script(data, text.data, /* lines= */ true);
    weft_text_add(data, "];\n");
}

static void add_trace(struct report *r, struct weft_text *data)
{
    struct weft_text text = {.context = r->model.context, .arena = &r->arena};
    weft_trace_print(&r->model, &r->profile, &text);
    weft_text_add(data, "const trace = ");
    add_script(data, text.data, /* lines= */ false);
    weft_text_add(data, ";\n");
}

static void add_scopes(struct report *r, struct weft_text *data)
{
    struct weft_text text = {.context = r->model.context, .arena = &r->arena};
    report_print_scopes(weft_plan_graph(r->model.plan), &r->arena, &text);
    weft_text_add(data, "const scopes = ");
    add_script(data, text.data, /* lines= */ false);
    weft_text_add(data, ";\n");
}

/* By the value that a group computes. */
static void add_code(struct report *r, struct weft_text *data)
{
    const struct weft_plan *const plan = r->model.plan;
    weft_text_add(data, "const code = Object.fromEntries([\n");
    for (uint32_t i = 0; i < plan->steps; i++) {
        struct weft_text text = {.context = r->model.context, .arena = &r->arena}, pair = text;
        if (!weft_opt_step_code(plan, &plan->step[i], &r->arena, &text))
            continue;
        weft_text_add(&pair, "{\"kind\":\"code\"");
        explain_json_pair(&pair, "value", weft_plan_step_name(plan, &plan->step[i]));
        explain_json_pair(&pair, "code", text.data);
        add_script(data, pair.data, /* lines= */ false);
        weft_text_add(data, "},\n");
    }
    weft_text_add(data, "].map(c => [c.value, c.code]));\n");
}

/* What was measured, or the prices: femtoseconds for each multiply-add, or byte, of all threads together. */
static void add_machine(const struct report *r, struct weft_text *data)
{
    const struct weft_target *const target = &r->model.plan->target;
    struct calibrate_rates rates = r->rates;
    const char *from = weft_prices_of(target)->from;
    if (r->measure)
        from = weft_arena_format(data->arena, "measured for this page, quartiles up to %.0f %% apart",
                                 100 * rates.spread);
    else
        rates = (struct calibrate_rates){.gflops = 2e6 / (double)weft_price_of(target, WEFT_PRICE_product),
                                         .memory = 1e6 / (double)weft_price_of(target, WEFT_PRICE_read_memory),
                                         .cache = 1e6 / (double)weft_price_of(target, WEFT_PRICE_read_private)};
    weft_text_format(data, "const machine = {gflops: %.1f, memory: %.1f, cache: %.1f, measured: %s", rates.gflops,
                     rates.memory, rates.cache, r->measure ? "true" : "false");
    struct weft_text text = {.context = r->model.context, .arena = data->arena};
    explain_json_pair(&text, "rates", from);
    add_script(data, text.data, /* lines= */ false);
    weft_text_format(data, "};\nconst threads = %d;\n", r->model.plan->workers);
}

/* Steps of bodies that have a clock: those without a fast kernel, in all trips of the last timed run. */
static void add_inner_steps(const struct report *r, struct weft_text *data)
{
    const struct weft_execution *const execution = r->model.execution;
    weft_text_add(data, "const inner = [");
    for (uint32_t i = 0; i < execution->inner_steps; i++) {
        struct weft_text text = {.context = r->model.context, .arena = data->arena};
        weft_text_format(&text, "%s{\"ns\":%lld", i ? "," : "", (long long)execution->inner_step[i].ns);
        explain_json_pair(&text, "value", execution->inner_step[i].value);
        explain_json_pair(&text, "kernel", execution->inner_step[i].kernel);
        weft_text_add(&text, "}");
        add_script(data, text.data, /* lines= */ false);
    }
    weft_text_add(data, "];\n");
}

static int print_data(void *arg)
{
    struct report *const r = arg;
    struct weft_text data = {.context = r->model.context, .arena = &r->arena};
    add_explanation(r, &data);
    add_trace(r, &data);
    add_code(r, &data);
    add_scopes(r, &data);
    add_machine(r, &data);
    add_inner_steps(r, &data);
    r->data = data.data;
    return WEFT_OK;
}

/* --- pictures ----------------------------------------------------------------------------------------------------- */

/* Without Graphviz a word that says so stands there, and the rest of the page works. */
static void write_picture(struct report *r, const struct weft_graph *graph, bool timed)
{
    char message[WEFT_DRAW_MESSAGE] = "this weft was built without Graphviz's cgraph";
#ifdef WEFT_HAVE_VIZ
    const size_t steps = timed ? r->profile.steps : 0;
    const char **const name = weft_arena_new(&r->arena, (steps + 1) * sizeof *name);
    int64_t *const ns = weft_arena_new(&r->arena, (steps + 1) * sizeof *ns);
    char *text = NULL;
    for (size_t i = 0; i < steps; i++) {
        name[i] = r->profile.step[i].value;
        ns[i] = r->profile.step[i].ns;
    }
    const struct weft_dot_options options = {.size = sizeof options, .max_nodes = -1, .heat_name = name, .heat_ns = ns,
                                             .heats = steps, .heat_note = "in the fastest run"};
    bool drawn = weft_dot(graph, &options, &text) >= 0 && weft_tool_draw(text, "svg", r->file, message);
    weft_free_text(r->model.context, text);
    if (drawn)
        return;
#endif
    (void)graph, (void)timed;
    fprintf(stderr, "weft report: no picture: %s\n", message);
    fprintf(r->file, "<p class=\"note\">No picture: %s.</p>\n", message);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static int write_page(void *arg)
{
    struct report *const r = arg;
    static const char *const marks[] = {"@AFTER@", "@BEFORE@", "@DATA@"};
    const char *rest = weft_report_html;
    for (int i = 0; i < 3; i++) {
        const char *const mark = strstr(rest, marks[i]);
        weft_assert(mark);
        (void)fwrite(rest, 1, (size_t)(mark - rest), r->file);
        if (i == 0)
            write_picture(r, weft_plan_graph(r->model.plan), /* timed= */ true);
        else if (i == 1)
            write_picture(r, r->model.graph, /* timed= */ false);
        else
            fputs(r->data, r->file);
        rest = mark + strlen(marks[i]);
    }
    fputs(rest, r->file);
    return WEFT_OK;
}

static bool write_report(struct report *r)
{
    struct weft_file file;
    bool right = weft_file_create(&file, r->to);
    if (right) {
        r->file = file.to;
        weft_tool_progress("drawing", 0);
        if (weft_protected(r->model.context, write_page, r) != WEFT_OK) { /* which the context has said */
            weft_file_discard(&file);
            return false;
        }
        right = weft_file_commit(&file);
    }
    if (!right) {
        fprintf(stderr, "weft report: %s: %s\n", r->to, strerror(errno));
        return false;
    }
    weft_tool_progress(NULL, 0);
    printf("report    written to %s\n", r->to);
    return true;
}

static int make_report(struct report *r)
{
    weft_tool_progress("compiling", 0);
    int code = explain_open(&r->options, &r->model);
    if (code != WEFT_EXIT_OK)
        return code;
    weft_tool_progress("measuring", 0);
    code = explain_measure(&r->options, &r->model, &r->profile);
    if (code == WEFT_EXIT_OK && r->measure && calibrate_probe(r->model.context, &r->rates) < 0) {
        fprintf(stderr, "weft report: %s\n", weft_status_text(WEFT_ERR_NOMEM));
        code = WEFT_EXIT_FAILED;
    }
    if (code == WEFT_EXIT_OK && weft_protected(r->model.context, print_data, r) != WEFT_OK)
        code = WEFT_EXIT_FAILED;
    if (code == WEFT_EXIT_OK && !write_report(r))
        code = WEFT_EXIT_FAILED;
    weft_tool_progress(NULL, 0);
    return code;
}

int weft_cmd_report(int argc, char **argv)
{
    struct report r = {0};
    const struct weft_option table[] = {
        {"-o", WEFT_OPTION_WORD, &r.to, "F.html", "the file (report.html)"},
        {"--measure", WEFT_OPTION_FLAG, &r.measure, NULL,
         "measure what the machine reaches, for the roofline, instead of taking the prices in use"},
        WEFT_MODEL_OPTIONS(&r.options),
        {0},
    };
    const struct weft_usage usage = {
        "weft report MODEL [options]",
        "Writes one file of HTML, which needs no network: the scopes of the model with the time in each, layers that\n"
        "repeat added up; the model as read and its plan as pictures to pan, zoom and search; for each box its\n"
        "decision, predicted and measured time, rejected alternatives, remarks and generated C; a timeline of a run\n"
        "with the memory in use, a roofline of all units, layouts and passes. Pictures need the program 'dot' of\n"
        "Graphviz.",
        table, WEFT_TOOL_MODEL, 1};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    code = code >= 0 ? code : weft_model_misused(&usage, &r.options);
    if (code >= 0)
        return code;
    r.options.path = words.word[0];
    r.to = r.to ? r.to : "report.html";
    code = weft_tool_open(r.options.cpu, r.options.threads, &r.model.context);
    if (code != WEFT_EXIT_OK)
        return code;
    weft_arena_open(&r.arena, r.model.context);
    code = make_report(&r);
    weft_arena_close(&r.arena);
    weft_profile_close(&r.profile);
    weft_model_close(&r.model);
    return code;
}
