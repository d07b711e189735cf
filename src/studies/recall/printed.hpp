// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Figures that source document 002_418f562d8c03bf58 prints, table by table, with the last digit it prints them to. T = 1000 and
// d = 64 where it says nothing else. Every comparison of the study reads them here.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {

/// A figure and the unit of its last printed digit.
struct printed {
  double value = 0;
  double unit = 0;
};

/// Table "Normalized MSE, Unnormalized MSE", DeltaNet; rows as `relations`.
struct printed_error {
  printed normalised, raw;
};
inline constexpr std::array<printed_error, 6> printed_errors{{{{0.028, 1e-3}, {0.026, 1e-3}},
                                                              {{0.030, 1e-3}, {0.001, 1e-3}},
                                                              {{0.030, 1e-3}, {0.0001, 1e-4}},
                                                              {{0.030, 1e-3}, {0.00001, 1e-5}},
                                                              {{0.030, 1e-3}, {1.92, 1e-2}},
                                                              {{0.030, 1e-3}, {0.96, 1e-2}}}};

/// Text on shrinkage, 1000 keys: length of v and variance of its elements, for k ... k^4.
struct printed_shrinkage {
  printed length, variance;
};
inline constexpr std::array<printed_shrinkage, 4> printed_shrinkages{{{{1.0, 0.1}, {0.0156, 1e-4}},
                                                                      {{0.21, 0.01}, {0.00046, 1e-5}},
                                                                      {{0.056, 1e-3}, {0.000051, 1e-6}},
                                                                      {{0.017, 1e-3}, {0.000005, 1e-6}}}};

/// Table "DeltaNet, RLS, Gap", values normalised.
struct printed_gap {
  relation f{};
  printed delta, least_squares;
};
inline constexpr std::array<printed_gap, 4> printed_gaps{{{relation::identity, {0.028, 1e-3}, {0.028, 1e-3}},
                                                          {relation::quadratic, {0.030, 1e-3}, {0.029, 1e-3}},
                                                          {relation::cubic, {0.030, 1e-3}, {0.029, 1e-3}},
                                                          {relation::exponential, {0.030, 1e-3}, {0.029, 1e-3}}}};

/// Table "500, 4000, 32000 tokens", identity; and the text below it, e^k at 32000.
inline constexpr std::array<std::size_t, 3> printed_tokens{500, 4000, 32000};
inline constexpr std::array<printed, 3> printed_hebbian{{{0.40, 0.01}, {20.8, 0.1}, {1306, 1}}};
inline constexpr std::array<printed, 3> printed_delta{{{0.030, 1e-3}, {0.031, 1e-3}, {0.031, 1e-3}}};
inline constexpr std::array<printed, 3> printed_least_squares{{{0.030, 1e-3}, {0.031, 1e-3}, {0.031, 1e-3}}};
inline constexpr printed printed_delta_exponential{2.06, 0.01};
inline constexpr printed printed_hebbian_exponential{1534, 1};

/// Text on retrieval after 1000 tokens: quadratic, and e^k for 1 and for 10 pairs.
inline constexpr printed printed_retrieval_quadratic{0.001, 1e-3};
inline constexpr printed printed_retrieval_quadratic_least_squares{0.0007, 1e-4};
inline constexpr printed printed_retrieval_exponential_1{0.004, 1e-3};
inline constexpr printed printed_retrieval_exponential_10{2.9, 0.1};
inline constexpr printed printed_retrieval_exponential_least_squares{1.0, 0.1};

/// Text on short convolution of width 7: without, with.
struct printed_convolution {
  relation f{};
  printed without, with;
};
inline constexpr std::array<printed_convolution, 3> printed_convolutions{{{relation::exponential, {1.92, 0.01}, {0.033, 1e-3}},
                                                                          {relation::quadratic, {0.001, 1e-3}, {0.034, 1e-3}},
                                                                          {relation::identity, {0.030, 1e-3}, {0.027, 1e-3}}}};

/// Table "MI(K,V), DeltaNet Retention, RLS Retention", in bits and per cent; quartic from the text.
struct printed_information {
  relation f{};
  printed bits, delta, least_squares;
};
inline constexpr std::array<printed_information, 5> printed_informations{
    {{relation::identity, {3.25, 0.01}, {99.6, 0.1}, {100, 1}},
     {relation::quadratic, {1.62, 0.01}, {0.8, 0.1}, {2.0, 0.1}},
     {relation::exponential, {2.87, 0.01}, {1.2, 0.1}, {5.8, 0.1}},
     {relation::sine, {1.62, 0.01}, {1.2, 0.1}, {3.1, 0.1}},
     {relation::quartic, {0.45, 0.01}, {1.7, 0.1}, {}}}};

/// Text on information: numbers kept over numbers seen, d^2 / (2 T d).
inline constexpr printed printed_compression{0.032, 1e-3};

}  // namespace deltaproof::detail::recall
