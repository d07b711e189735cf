// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Cuts a document into numbered sentences, so that the ledger can say of each which claims it makes without holding
// its text. A line ends a sentence; so do . ! ? before a space and a capital, a bracket, a quote or a formula, and
// 。！？ anywhere; a displayed formula ends one where a capital follows. Nothing ends inside $...$ or a displayed
// formula, and one that spans lines is one sentence. What holds neither letter nor digit is none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deltaproof::claim_detail {

/// The sentences of a text in UTF-8, in order; sentence n of the seed map is element n - 1.
[[nodiscard]] std::vector<std::string> sentences(std::string_view text);

}  // namespace deltaproof::claim_detail
