// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/negative_eigenvalues/sections.hpp"
#include "studies/shared/findings.hpp"

namespace deltaproof {

namespace detail::negative_eigenvalues {

settings settings_for(const run_options& options) {
  settings size;
  if (options.full) {
    size.tokens = 65536;
    size.words = 25;
    size.reference_words = 9;
  }
  return size;
}

}  // namespace detail::negative_eigenvalues

namespace {

using namespace detail::negative_eigenvalues;
using detail::shared::value_of;

std::string answer(const report& r) {
  std::string text = value_of(r, "words-are-exact", "exact") == value_of(r, "words-are-exact", "cases")
                         ? "Reflections: with k = e_i − e_j and b|k|² = 2 they follow parity, S₃ and S₅ exactly, in every format "
                           "and for words of "
                           "every length"
                         : "Reflections, which are not exact in every format";
  text += "; the margin that keeps rounded unit keys stable costs half of a reflected direction in " +
          number(value_of(r, "margin-costs-memory", "bf16"), 3) + " steps in bf16";
  const double wrong = value_of(r, "margin-costs-words", "wrong_margin");
  if (wrong == wrong) {
    text += wrong > 0 ? ", and with it S₅ answers wrongly after " + number(wrong, 4) + " tokens even in 256 bits"
                      : ", though S₅ is still answered";
    text += value_of(r, "rounding-freezes-the-decay", "freezes") == 1 ? ", while a rounded state freezes before it gets that far"
                                                                      : "";
  }
  return text + ".";
}

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  add_words(options, size, r);
  add_margins(options, size, r);
  add_conventions(options, size, r);
  r.answer = answer(r);
  r.method =
      "b is the strength that multiplies k kᵀ (2β in both conventions); λ = 1 − b|k|². Words: the state starts as I, v = 0, each "
      "token is a uniformly "
      "random element of S_n as at most n − 1 transpositions, each one step with key (e_i − e_j)/√2; the answer is the largest "
      "entry of each row. Steps "
      "run in fp32 (fp64, 256 bits), the state is rounded to its format after each. Fixed points, half-lives and the exactness "
      "of words are decided "
      "in rationals.";
  r.not_claimed = {
      "That a trained model finds these keys, or that its read-out needs a lead of ½: that is a convention to compare margins "
      "by.",
      "Horizons in tokens are medians over the stated words; other words, and generators other than uniform elements, have "
      "others.",
      "Nothing about keys that are not (e_i − e_j)/√2: how often a rounded unit key has |λ| > 1 at b = 2 is the subject of study "
      "`eigenvalues`.",
      "S₅ is not solvable, so that its word problem is complete for NC¹ (Barrington); no claim is made here about what other "
      "architectures can do.",
      "The forced state's closed form needs fresh uniform unit keys and independent values.",
  };
  r.parameters = {{"tokens", size.tokens}, {"words", size.words}, {"reference_words", size.reference_words}};
  return r;
}

}  // namespace

extern const study negative_eigenvalues_study{
    "negative-eigenvalues", "What are negative eigenvalues good for, and what does the margin against −1 cost?", &run};

}  // namespace deltaproof
