/* SPDX-License-Identifier: Apache-2.0 */
/* test_prices.c: files of prices: what is read, what is refused and why, where they are looked for; and that they
 * decide. */
#include "tests/unit/plan_support.h"
#include "sched/prices.h"

#include <sys/stat.h>
#include <unistd.h>

static char messages[4096]; /* of the last context */

static void keep(void *user, const struct weft_diagnostic *d)
{
    const size_t used = strlen(messages);
    snprintf(messages + used, sizeof messages - used, "%s:%d: %s%s\n", d->file ? d->file : "", (int)d->line,
             d->severity == WEFT_WARNING ? "warning: " : "", d->message);
}

static const char *this_machine(void)
{
    static char name[WEFT_MACHINE_BYTES];
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    weft_machine_name(&cpu, cpu.flags, name);
    return name;
}

static const char *shipped_here(void)
{
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    return weft_prices_shipped_for(&cpu, cpu.flags, 1)->from;
}

/* The shipped prices as this machine's; a price whose name ends so has another value. */
static void write_text(char text[8192], const char *ending, int value)
{
    int used = snprintf(text, 8192, "weft prices 1\nmachine %s\nthreads 2\n", this_machine());
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++) {
        const char *const name = weft_price_list[i].name;
        const bool other = ending && strlen(name) > strlen(ending) &&
                           strcmp(name + strlen(name) - strlen(ending), ending) == 0;
        used += snprintf(text + used, (size_t)(8192 - used), "%s %d\n", name,
                         other ? value : weft_prices_shipped.price[i]);
    }
}

static const char *in_folder(void **state, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    return path;
}

static const char *write_file(void **state, const char *name, const char *text)
{
    const char *const path = in_folder(state, name);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static int open_by(const char *prices, struct weft_context **ret_context)
{
    const struct weft_context_options options = {.size = sizeof options, .diagnose = keep, .threads = 1,
                                                 .prices = prices};
    messages[0] = '\0';
    *ret_context = NULL;
    return weft_open(&options, ret_context);
}

static const char *from_of(struct weft_context *context) { return weft_prices_of(weft_context_target(context))->from; }

struct printing {
    struct weft_context *context;
    const struct weft_prices *prices;
    char *text;
};

static int print_protected(void *user)
{
    struct printing *const p = user;
    struct weft_text text = {.context = p->context};
    weft_prices_print(p->prices, &text);
    p->text = weft_text_take(&text);
    weft_text_close(&text);
    return p->text ? WEFT_OK : WEFT_ERR_NOMEM;
}

static int print(struct weft_context *context, const struct weft_prices *prices, char **ret_text)
{
    struct printing printing = {.context = context, .prices = prices};
    const int status = weft_protected(context, print_protected, &printing);
    *ret_text = printing.text;
    return status;
}

static void what_is_printed_is_read(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_prices prices = weft_prices_shipped, again;
    snprintf(prices.machine, sizeof prices.machine, "%s", this_machine());
    prices.lanes = 4; /* as no machine's name says */
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++)
        prices.price[i] = i == 0 ? 1 : i == 1 ? 1000000000 : 7919 * (int32_t)i;
    char *text;
    assert_int_equal(print(context, &prices, &text), WEFT_OK);
    assert_true(weft_prices_parse(context, WEFT_ERROR, "test", text, strlen(text), this_machine(), &again));
    assert_string_equal(again.machine, prices.machine);
    assert_string_equal(again.from, "test");
    assert_int_equal(again.threads, prices.threads);
    assert_int_equal(again.lanes, prices.lanes);
    assert_memory_equal(again.price, prices.price, sizeof prices.price);
    weft_free_text(context, text);
    weft_close(context);
}

static void blanks_comments_and_order_are_free(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_prices prices;
    char data[8192];
    int used = snprintf(data, sizeof data, "weft prices 1 # of a test\nthreads 3 # and more\r\n\n");
    for (unsigned i = WEFT_PRICE_COUNT; i-- > 0;)
        used += snprintf(data + used, sizeof data - (size_t)used, "\t%s  %u\n", weft_price_list[i].name, i + 1);
    used += snprintf(data + used, sizeof data - (size_t)used, "machine %s", this_machine());
    assert_true(weft_prices_parse(context, WEFT_ERROR, "test", data, (size_t)used, this_machine(), &prices));
    assert_int_equal(prices.threads, 3);
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++)
        assert_int_equal(prices.price[i], i + 1);
    weft_close(context);
}

/* Files from before there was a line for it: the vectors are those of the levels in the machine's name. */
static void lanes_follow_from_the_machine_where_no_line_says_them(void **state)
{
    static const struct { const char *levels; int32_t lanes; } cases[] = {
        {"baseline", 1}, {"avx2", 8}, {"avx512", 16}, {"avx512+bf16+vnni", 16}};
    struct weft_context *context = open_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char machine[WEFT_MACHINE_BYTES], whole[8192], named[9000];
        struct weft_prices prices;
        snprintf(machine, sizeof machine, "Other-6-1-32K-1024K-0K-%s", cases[i].levels);
        write_text(whole, NULL, 0);
        const char *const rest = strstr(whole, "threads");
        snprintf(named, sizeof named, "weft prices 1\nmachine %s\n%s", machine, rest);
        assert_true(weft_prices_parse(context, WEFT_ERROR, "test", named, strlen(named), machine, &prices));
        assert_int_equal(prices.lanes, cases[i].lanes);
    }
    weft_close(context);
}

static void damage_is_named(void **state)
{
    static const struct { const char *from, *to, *message; } cases[] = {
        {"weft prices 1", "weft grapes 1", ":1: this is no file of prices"},
        {"weft prices 1", "weft prices 2", ":1: this is no file of prices"},
        {"machine ", "machine Other-6-1-", ":2: these are prices of another machine: Other-6-1-"},
        {"machine ", "# machine ", ":0: the line 'machine …' is missing"},
        {"threads 2", "threads two", ":3: 'two' is no number of threads"},
        {"threads 2", "threads", ":3: 'threads' wants one value"},
        {"threads 2\n", "threads 2\nlanes none\n", ":4: 'none' is no number of lanes"},
        {"threads 2\n", "threads 2\nlanes 2000\n", ":4: '2000' is no number of lanes: from 1 to 1024 is"},
        {"read_private ", "read_private -", ":4: '-"},
        {"read_private ", "read_private 0x", ":4: '0x"},
        {"read_private ", "read_private 99999999999999999999", "is no price for read_private"},
        {"read_private ", "read_privet ", ":4: no price is called 'read_privet'"},
        {"read_private ", "read_private 1 ", ":4: 'read_private' wants one value"},
        {"read_shared", "read_private", ":5: read_private was given in line 4 already"},
        {"repeat_last", "# repeat_last", ":0: repeat_last is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char whole[8192], damaged[9000];
        write_text(whole, NULL, 0);
        const char *const at = strstr(whole, cases[i].from);
        assert_non_null(at);
        snprintf(damaged, sizeof damaged, "%.*s%s%s", (int)(at - whole), whole, cases[i].to,
                 at + strlen(cases[i].from));
        struct weft_context *context;
        assert_int_equal(open_by(write_file(state, "damaged", damaged), &context), WEFT_ERR_SYNTAX);
        assert_null(context);
        if (!strstr(messages, cases[i].message))
            fail_msg("expected '%s' in: %s", cases[i].message, messages);
        assert_non_null(strstr(messages, "/damaged:"));
    }
}

/* Other levels are a warning, whatever else is wrong is not. */
static void prices_of_other_levels(void **state)
{
    char whole[8192], other[9000];
    struct weft_context *context;
    write_text(whole, NULL, 0);
    char *const end = strchr(strstr(whole, "machine "), '\n');
    for (int damaged = 0; damaged < 3; damaged++) {
        snprintf(other, sizeof other, "%.*s+none%s%s", (int)(end - whole), whole, end,
                 damaged == 1 ? "no_such_price 1\n" : "");
        if (damaged == 2)
            *strstr(other, "repeat_last") = '#';
        const int status = open_by(write_file(state, "damaged", other), &context);
        assert_non_null(strstr(messages, ":2: warning: these are prices of kernels of other levels"));
        assert_int_equal(status, damaged ? WEFT_ERR_SYNTAX : WEFT_OK);
        if (damaged == 0)
            assert_string_equal(from_of(context), shipped_here());
        else
            assert_non_null(strstr(messages, damaged == 1 ? ": no price is called" : ":0: repeat_last is missing"));
        weft_close(context);
    }
}

static void files_that_are_none(void **state)
{
    struct weft_context *context;
    char text[8192];
    assert_int_equal(open_by(in_folder(state, "nowhere"), &context), WEFT_ERR_IO);
    assert_non_null(strstr(messages, "nowhere"));
    assert_int_equal(open_by(*state, &context), WEFT_ERR_SYNTAX);
    assert_int_equal(open_by(write_file(state, "empty", ""), &context), WEFT_ERR_SYNTAX);
    assert_non_null(strstr(messages, "it is empty"));
    write_text(text, NULL, 0);
    text[strlen(text) / 2] = '\0'; /* cut */
    assert_int_equal(open_by(write_file(state, "cut", text), &context), WEFT_ERR_SYNTAX);
    char long_line[2000];
    memset(long_line, 'x', sizeof long_line - 1);
    long_line[sizeof long_line - 1] = '\0';
    assert_int_equal(open_by(write_file(state, "long", long_line), &context), WEFT_ERR_SYNTAX);
}

static void where_they_are_looked_for(void **state)
{
    struct weft_context *context;
    char text[8192], name[WEFT_MACHINE_BYTES + 16];
    write_text(text, NULL, 0);
    unsetenv("WEFT_PRICES");
    setenv("XDG_CACHE_HOME", *state, 1);
    assert_int_equal(open_by(NULL, &context), WEFT_OK);
    assert_string_equal(from_of(context), shipped_here());
    weft_close(context);

    assert_int_equal(mkdir(in_folder(state, "weft"), 0777), 0);
    snprintf(name, sizeof name, "weft/%s.prices", this_machine());
    write_file(state, name, text);
    assert_int_equal(open_by(NULL, &context), WEFT_OK);
    assert_non_null(strstr(from_of(context), this_machine()));
    weft_close(context);

    write_file(state, name, "weft prices 1\n"); /* nobody asked for it: a warning */
    assert_int_equal(open_by(NULL, &context), WEFT_OK);
    assert_non_null(strstr(messages, "warning: "));
    assert_string_equal(from_of(context), shipped_here());
    weft_close(context);

    setenv("WEFT_PRICES", write_file(state, "mine", text), 1);
    assert_int_equal(open_by(NULL, &context), WEFT_OK);
    assert_non_null(strstr(from_of(context), "/mine"));
    weft_close(context);
    assert_int_equal(open_by("", &context), WEFT_OK);
    assert_string_equal(from_of(context), "shipped");
    weft_close(context);
    setenv("WEFT_PRICES", "", 1);
    assert_int_equal(open_by(NULL, &context), WEFT_OK);
    assert_string_equal(from_of(context), "shipped");
    weft_close(context);
}

static void shipped_prices_follow_the_cpu(void **state)
{
    const struct weft_cpu amd = {.vendor = "AuthenticAMD"}, intel = {.vendor = "GenuineIntel"};
    assert_ptr_equal(weft_prices_shipped_for(&amd, WEFT_CPU_AVX512, 16), &weft_prices_shipped);
    assert_ptr_equal(weft_prices_shipped_for(&intel, WEFT_CPU_AVX512, 5), &weft_prices_shipped_intel);
    assert_ptr_equal(weft_prices_shipped_for(&intel, WEFT_CPU_AVX512, 6), &weft_prices_shipped_wide);
    assert_ptr_equal(weft_prices_shipped_for(&intel, WEFT_CPU_AVX2, 2), &weft_prices_shipped_avx2);
    assert_ptr_equal(weft_prices_shipped_for(&amd, WEFT_CPU_AVX2, 2), &weft_prices_shipped_avx2);
    assert_ptr_equal(weft_prices_shipped_for(&amd, 0, 2), &weft_prices_shipped);
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++)
        assert_true(weft_prices_shipped.price[i] > 0 && weft_prices_shipped_intel.price[i] > 0 &&
                    weft_prices_shipped_avx2.price[i] > 0 && weft_prices_shipped_wide.price[i] > 0);
}

/* Rows are found by bisection and name kernels that there are. With wider vectors none takes more than half as long
 * again, which square roots do. */
static void arithmetic_of_ops_is_priced(void **state)
{
    static const struct {
        const char *op;
        int eight, sixteen;
    } row[] = {
#define STRIP_PRICE(op, eight, sixteen) {op, eight, sixteen},
#include "kernels/strip/op_price.def"
    };
    const uint32_t avx2 = WEFT_CPU_AVX2, avx512 = WEFT_CPU_AVX2 | WEFT_CPU_AVX512;
    if (!WEFT_CPU_BUILT)
        skip(); /* there are no such kernels to price */
    for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
        assert_true(i == 0 || strcmp(row[i - 1].op, row[i].op) < 0);
        const struct weft_strip_kernel *const kernel = weft_strip_find(row[i].op, WEFT_K_F32, WEFT_K_F32, avx2);
        assert_non_null(kernel);
        assert_true(weft_strip_ns(kernel) == 1e-3 * row[i].eight && row[i].eight > 0);
        const double wide = weft_strip_ns(weft_strip_find(row[i].op, WEFT_K_F32, WEFT_K_F32, avx512));
        assert_true(wide == 1e-3 * row[i].sixteen && 10 * row[i].sixteen <= 15 * row[i].eight);
        assert_true(weft_strip_ns(weft_strip_find(row[i].op, WEFT_K_F32, WEFT_K_F32, 0)) > weft_strip_ns(kernel));
    }
    assert_true(weft_strip_ns(weft_strip_find("add", WEFT_K_F32, WEFT_K_F32, avx2)) == 0);
}

/* What is stored how in a plan by prices in which one order costs 100 times the other. */
static void plan_by(void **state, const char *dear, char ret_text[4096])
{
    static const char source[] =
        "weft 1\n"
        "graph @net(%x: f32[1,32,16,16], %w: f32[32,32,3,3]) {\n"
        "  %y: f32[1,32,16,16] = conv %x, %w pad=[1 1 1 1]\n"
        "  %z: f32[1,32,16,16] = conv %y, %w pad=[1 1 1 1]\n"
        "  %p: f32[1,32,16,16] = conv %z, %w pad=[1 1 1 1]\n"
        "  return %p\n"
        "}\n";
    char text[8192], *printed;
    struct weft_context *context;
    write_text(text, dear, 1000000);
    assert_int_equal(open_by(write_file(state, "dear", text), &context), WEFT_OK);
    struct weft_graph *graph = parse(context, source);
    struct weft_plan *plan = compile(graph, 0);
    assert_int_equal(weft_plan_print(plan, &printed), WEFT_OK);
    snprintf(ret_text, 4096, "%s", printed);
    weft_free_text(context, printed);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void prices_decide(void **state)
{
    char first[4096], last[4096], again[4096];
    plan_by(state, "_first", last);
    plan_by(state, "_last", first);
    plan_by(state, "_last", again);
    assert_non_null(strstr(last, "%y: f32[1,32,16,16]{0 2 3 1} = conv"));
    assert_non_null(strstr(first, "%y: f32[1,32,16,16] = conv"));
    assert_string_equal(first, again);
}

static int make_folder(void **state)
{
    static char folder[] = "/tmp/weft-prices-XXXXXX";
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int drop_folder(void **state)
{
    static const char *const names[] = {"damaged", "empty", "cut", "long", "mine", "dear"};
    char name[WEFT_MACHINE_BYTES + 16];
    snprintf(name, sizeof name, "weft/%s.prices", this_machine());
    unlink(in_folder(state, name));
    rmdir(in_folder(state, "weft"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unlink(in_folder(state, names[i]));
    return rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_read),
        cmocka_unit_test(blanks_comments_and_order_are_free),
        cmocka_unit_test(lanes_follow_from_the_machine_where_no_line_says_them),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(prices_of_other_levels),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(where_they_are_looked_for),
        cmocka_unit_test(shipped_prices_follow_the_cpu), cmocka_unit_test(arithmetic_of_ops_is_priced),
        cmocka_unit_test(prices_decide),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
