// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The fuzz target of the exchange reader: any bytes are read as a file, as a problem and as a result of two problems. The
// library's own errors are the expected end; anything else (a crash, another exception, a sanitizer's report) is a fault.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "corpus.hpp"
#include "deltaproof/support/errors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string_view how : {"any", "problem", "result", "plain_result"}) {
    try {
      deltaproof::notes_list notes;
      deltaproof::testing::try_file(bytes, how, notes);
    } catch (const deltaproof::error&) {
      continue;
    }
  }
  return 0;
}
