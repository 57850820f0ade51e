/* SPDX-License-Identifier: Apache-2.0 */
/* emit_forms.h: kernel forms that the C back end takes. */
#ifndef WEFT_TEST_EMIT_FORMS_H
#define WEFT_TEST_EMIT_FORMS_H

static const char softmax_rows[] = "kernel @softmax_rows(in %x: f32[N,C], out %y: f32[N,C]) {\n"
                                   "  axis r in N\n  axis c in C\n"
                                   "  phase r {\n"
                                   "    sweep r, c {\n"
                                   "      %0: f32 = load %x[r, c]\n"
                                   "      %m: f32 = fold reduce_max %0 over c\n"
                                   "    }\n"
                                   "    sweep r, c {\n"
                                   "      %1: f32 = load %x[r, c]\n"
                                   "      %2: f32 = sub %1, %m\n"
                                   "      %e: f32 = exp %2\n"
                                   "      %s: f32 = fold sum %e over c\n"
                                   "    }\n"
                                   "    sweep r, c {\n"
                                   "      %q: f32 = div %e, %s\n"
                                   "      store %y[r, c], %q\n"
                                   "    }\n"
                                   "  }\n"
                                   "}\n";
/* Rows whose last but one stage picks `term` where the number of a column is the row's label: the numbers of columns
 * are the array `line`. */
#define PICKING(name, line, term) \
    "kernel @" name "(in %x: f32[N,C], in %label: f32[N], in %" line ": f32[C],\n" \
    "                      out %y: f32[N], out %lse: f32[N]) {\n" \
    "  axis r in N\n  axis c in C\n" \
    "  phase r {\n" \
    "    sweep r, c {\n" \
    "      %0: f32 = load %x[r, c]\n" \
    "      %m: f32 = fold reduce_max %0 over c\n" \
    "    }\n" \
    "    sweep r, c {\n" \
    "      %1: f32 = load %x[r, c]\n" \
    "      %d: f32 = sub %1, %m\n" \
    "      %e: f32 = exp %d\n" \
    "      %s: f32 = fold sum %e over c\n" \
    "    }\n" \
    "    sweep r {\n" \
    "      %l: f32 = log %s\n" \
    "      %2: f32 = add %l, %m\n" \
    "      store %lse[r], %2\n" \
    "    }\n" \
    "    sweep r, c {\n" \
    "      %3: f32 = " term "\n" \
    "      %4: f32 = load %" line "[c]\n" \
    "      %5: f32 = load %label[r]\n" \
    "      %6: bool = eq %4, %5\n" \
    "      %z: f32 = const 0\n" \
    "      %7: f32 = select %6, %3, %z\n" \
    "      %p: f32 = fold sum %7 over c\n" \
    "    }\n" \
    "    sweep r {\n" \
    "      %8: f32 = neg %p\n" \
    "      store %y[r], %8\n" \
    "    }\n" \
    "  }\n" \
    "}\n"
static const char cross_entropy[] = PICKING("cross_entropy", "count", "sub %d, %l");
/* What an earlier stage keeps, which the next row overwrites before a label could be picked. */
static const char picked_kept[] = PICKING("picked_kept", "count", "div %e, %s");
/* Numbers of columns that do not count up. */
static const char picked_pair[] = PICKING("picked_pair", "pair", "sub %d, %l");
static const char softmax_columns[] = "kernel @softmax_columns(in %x: f32[C,N], out %y: f32[C,N]) {\n"
                                      "  axis k in N\n  axis c in C\n"
                                      "  phase k {\n"
                                      "    sweep k, c {\n"
                                      "      %0: f32 = load %x[c, k]\n"
                                      "      %m: f32 = fold reduce_max %0 over c\n"
                                      "    }\n"
                                      "    sweep k, c {\n"
                                      "      %1: f32 = load %x[c, k]\n"
                                      "      %2: f32 = sub %1, %m\n"
                                      "      %e: f32 = exp %2\n"
                                      "      %s: f32 = fold sum %e over c\n"
                                      "    }\n"
                                      "    sweep k, c {\n"
                                      "      %q: f32 = div %e, %s\n"
                                      "      store %y[c, k], %q\n"
                                      "    }\n"
                                      "  }\n"
                                      "}\n";
static const char layer_norm[] = "kernel @layer_norm(in %x: f32[N,C], in %g: f32[C], in %b: f32[C], out %y: f32[N,C],\n"
                                 "                   out %mean: f32[N], out %rstd: f32[N,1]) {\n"
                                 "  axis r in N\n  axis c in C\n"
                                 "  phase r {\n"
                                 "    sweep r, c {\n"
                                 "      %0: f32 = load %x[r, c]\n"
                                 "      %m: f32 = fold mean %0 over c\n"
                                 "    }\n"
                                 "    sweep r {\n"
                                 "      store %mean[r], %m\n"
                                 "    }\n"
                                 "    sweep r, c {\n"
                                 "      %1: f32 = load %x[r, c]\n"
                                 "      %d: f32 = sub %1, %m\n"
                                 "      %2: f32 = mul %d, %d\n"
                                 "      %v: f32 = fold mean %2 over c\n"
                                 "    }\n"
                                 "    sweep r {\n"
                                 "      %3: f32 = const 1e-05\n"
                                 "      %4: f32 = add %v, %3\n"
                                 "      %s: f32 = rsqrt %4\n"
                                 "      store %rstd[r, 0], %s\n"
                                 "    }\n"
                                 "    sweep r, c {\n"
                                 "      %5: f32 = mul %d, %s\n"
                                 "      %6: f32 = load %g[c]\n"
                                 "      %7: f32 = mul %5, %6\n"
                                 "      %8: f32 = load %b[c]\n"
                                 "      %9: f32 = add %7, %8\n"
                                 "      store %y[r, c], %9\n"
                                 "    }\n"
                                 "  }\n"
                                 "}\n";
static const char rms_norm[] = "kernel @rms_norm(in %x: f32[N,C], in %g: f32[C], in %e: f32[N], out %y: f32[N,C]) {\n"
                               "  axis r in N\n  axis c in C\n"
                               "  phase r {\n"
                               "    sweep r, c {\n"
                               "      %0: f32 = load %x[r, c]\n"
                               "      %1: f32 = mul %0, %0\n"
                               "      %m: f32 = fold mean %1 over c\n"
                               "    }\n"
                               "    sweep r {\n"
                               "      %2: f32 = load %e[r]\n"
                               "      %3: f32 = add %m, %2\n"
                               "      %s: f32 = rsqrt %3\n"
                               "    }\n"
                               "    sweep r, c {\n"
                               "      %4: f32 = load %x[r, c]\n"
                               "      %5: f32 = mul %4, %s\n"
                               "      %6: f32 = load %g[c]\n"
                               "      %7: f32 = mul %5, %6\n"
                               "      store %y[r, c], %7\n"
                               "    }\n"
                               "  }\n"
                               "}\n";
static const char mean_columns[] = "kernel @mean_columns(in %x: f32[C,N], in %b: f32[C], out %y: f32[N],\n"
                                   "                     out %z: f32[N]) {\n"
                                   "  axis k in N\n  axis c in C\n"
                                   "  phase k {\n"
                                   "    sweep k, c {\n"
                                   "      %0: f32 = load %x[c, k]\n"
                                   "      %1: f32 = load %b[c]\n"
                                   "      %2: f32 = mul %0, %1\n"
                                   "      %m: f32 = fold mean %2 over c\n"
                                   "      %p: f32 = fold reduce_min %0 over c\n"
                                   "    }\n"
                                   "    sweep k {\n"
                                   "      store %z[k], %p\n"
                                   "      %3: f32 = silu %m\n"
                                   "      store %y[k], %3\n"
                                   "    }\n"
                                   "  }\n"
                                   "}\n";
static const char gelu_chain[] = "kernel @gelu_chain(in %x: f32[N,C], in %z: f32[N,C], out %y: f32[N,C]) {\n"
                                 "  axis r in N\n  axis c in C\n"
                                 "  phase r, c {\n"
                                 "    sweep r, c {\n"
                                 "      %0: f32 = load %x[r, c]\n"
                                 "      %1: f32 = load %z[r, c]\n"
                                 "      %2: f32 = const 0.7\n"
                                 "      %3: f32 = fma %0, %1, %2\n"
                                 "      %4: f32 = gelu %3\n"
                                 "      %5: f32 = clamp(-1, 2) %4\n"
                                 "      %6: f32 = tanh %5\n"
                                 "      %7: f32 = leaky_relu(0.01) %6\n"
                                 "      %8: f32 = max %7, %0\n"
                                 "      %9: f32 = pow %8, %2\n"
                                 "      %10: f32 = sin %9\n"
                                 "      %11: f32 = selu(1.67, 1.05) %10\n"
                                 "      store %y[r, c], %11\n"
                                 "    }\n"
                                 "  }\n"
                                 "}\n";
static const char bias_relu[] = "kernel @bias_relu(in %x: f32[N,C], in %b: f32[C], in %a: f32[N], out %y: f32[N,C]) {\n"
                                "  axis r in N\n  axis c in C\n"
                                "  phase r, c {\n"
                                "    sweep r, c {\n"
                                "      %0: f32 = load %x[r, c]\n"
                                "      %1: f32 = load %b[c]\n"
                                "      %2: f32 = add %0, %1\n"
                                "      %3: f32 = relu %2\n"
                                "      %4: f32 = load %a[r]\n"
                                "      %5: f32 = mul %3, %4\n"
                                "      store %y[r, c], %5\n"
                                "    }\n"
                                "  }\n"
                                "}\n";
static const char choices[] = "kernel @choices(in %x: f32[N,C], in %z: f32[C], in %k: bool[N,C], in %i: i32[N,C],\n"
                              "                out %y: f32[N,C], out %p: bool[N,C]) {\n"
                              "  axis r in N\n  axis c in C\n"
                              "  phase r, c {\n"
                              "    sweep r, c {\n"
                              "      %0: f32 = load %x[r, c]\n"
                              "      %1: f32 = load %z[c]\n"
                              "      %2: bool = lt %0, %1\n"
                              "      %3: bool = load %k[r, c]\n"
                              "      %4: bool = and %2, %3\n"
                              "      %5: bool = is_nan %0\n"
                              "      %6: bool = or %4, %5\n"
                              "      store %p[r, c], %6\n"
                              "      %7: i32 = load %i[r, c]\n"
                              "      %8: f32 = cast(0) %7\n"
                              "      %9: f32 = select %6, %8, %0\n"
                              "      %10: bool = not %2\n"
                              "      %11: f32 = cast(0) %10\n"
                              "      %12: f32 = add %9, %11\n"
                              "      store %y[r, c], %12\n"
                              "    }\n"
                              "  }\n"
                              "}\n";
static const char masked_softmax[] = "kernel @masked(in %x: f16[N,C], in %k: bool[N,C], out %y: bf16[N,C]) {\n"
                                     "  axis r in N\n  axis c in C\n"
                                     "  phase r {\n"
                                     "    sweep r, c {\n"
                                     "      %0: f16 = load %x[r, c]\n"
                                     "      %1: f32 = cast(0) %0\n"
                                     "      %2: bool = load %k[r, c]\n"
                                     "      %3: f32 = const -inf\n"
                                     "      %z: f32 = select %2, %1, %3\n"
                                     "      %m: f32 = fold reduce_max %z over c\n"
                                     "    }\n"
                                     "    sweep r, c {\n"
                                     "      %4: f32 = sub %z, %m\n"
                                     "      %e: f32 = exp %4\n"
                                     "      %s: f32 = fold sum %e over c\n"
                                     "    }\n"
                                     "    sweep r, c {\n"
                                     "      %5: f32 = div %e, %s\n"
                                     "      %6: bf16 = cast(0) %5\n"
                                     "      store %y[r, c], %6\n"
                                     "    }\n"
                                     "  }\n"
                                     "}\n";
static const char halves[] = "kernel @halves(in %x: f16[N,C], in %b: f16[C], out %y: f16[N,C], out %s: f16[N],\n"
                             "               out %q: bool[N,C]) {\n"
                             "  axis r in N\n  axis c in C\n"
                             "  phase r {\n"
                             "    sweep r, c {\n"
                             "      %0: f16 = load %x[r, c]\n"
                             "      %1: f16 = load %b[c]\n"
                             "      %2: f16 = mul %0, %1\n"
                             "      %t: f16 = fold mean %2 over c\n"
                             "    }\n"
                             "    sweep r {\n"
                             "      store %s[r], %t\n"
                             "    }\n"
                             "    sweep r, c {\n"
                             "      %3: f16 = sub %2, %t\n"
                             "      %4: f16 = const 0.3\n"
                             "      %5: f16 = add %3, %4\n"
                             "      %6: f16 = gelu.tanh %5\n"
                             "      store %y[r, c], %6\n"
                             "      %7: bool = gt %6, %1\n"
                             "      store %q[r, c], %7\n"
                             "    }\n"
                             "  }\n"
                             "}\n";
static const char products[] = "kernel @products(in %x: f32[N,C], in %a: f32[N], out %y: f32[N], out %z: f32[N],\n"
                               "                 out %w: f32[N]) {\n"
                               "  axis r in N\n  axis c in C\n"
                               "  phase r {\n"
                               "    sweep r, c {\n"
                               "      %0: f32 = load %x[r, c]\n"
                               "      %1: f32 = cos %0\n"
                               "      %p: f32 = fold prod %1 over c\n"
                               "      %m: f32 = fold reduce_min %0 over c\n"
                               "    }\n"
                               "    sweep r {\n"
                               "      store %y[r], %p\n"
                               "      store %z[r], %m\n"
                               "    }\n"
                               "    sweep r, c {\n"
                               "      %2: f32 = load %a[r]\n"
                               "      %3: f32 = load %x[r, c]\n"
                               "      %4: f32 = div %3, %2\n"
                               "      %s: f32 = fold sum %4 over c\n"
                               "    }\n"
                               "    sweep r {\n"
                               "      store %w[r], %s\n"
                               "    }\n"
                               "  }\n"
                               "}\n";

#endif
