// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Every recorded problem and result is read: those the project carries, and those of support/recordings.hpp.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "deltaproof/files/exchange.hpp"
#include "support/recordings.hpp"

namespace deltaproof {
namespace {

nlohmann::json index_of(const std::filesystem::path& folder) {
  return nlohmann::json::parse(std::ifstream(folder / "index.json"));
}

void read_case(const std::filesystem::path& folder, const std::string& name, const std::string& op) {
  const auto file_of = [&](const std::string& kind) { return folder / (name + "." + kind + ".safetensors"); };
  notes_list notes;
  const safetensors_file file = read_safetensors(file_of("problem"));
  const std::string hash = sha256_hex(file.bytes());
  const problem p = parse_problem(file, notes);
  EXPECT_EQ(name_of(p.op), op) << name;

  const std::string bytes = problem_bytes(p);
  std::shared_ptr<std::byte[]> buffer(new std::byte[bytes.size()]);
  std::memcpy(buffer.get(), bytes.data(), bytes.size());
  const problem back = parse_problem(safetensors_file(buffer, bytes.size(), name), notes);
  EXPECT_TRUE(same_bits(p.q, back.q) && same_bits(p.k, back.k) && same_bits(p.v, back.v) && same_bits(p.beta, back.beta));
  EXPECT_EQ(problem_bytes(back), bytes) << name;

  std::size_t results = 0;
  for (const std::string& kind : std::vector<std::string>{"chunk", "recurrent", "ref64"}) {
    if (!std::filesystem::exists(file_of(kind))) continue;
    const result r = read_result(file_of(kind), p, hash, notes);
    EXPECT_EQ(r.path == path_kind::chunk, kind == "chunk") << name << "." << kind;
    EXPECT_EQ(r.chunk_size.has_value(), kind == "chunk") << name << "." << kind;
    EXPECT_TRUE(r.final_state_kv().has_value()) << name << "." << kind;
    EXPECT_FALSE(r.kernel.empty()) << name << "." << kind;
    ++results;
  }
  EXPECT_GE(results, 2U) << name;
  EXPECT_TRUE(notes.empty()) << name << ": " << notes.front();
}

std::size_t read_all(const std::filesystem::path& folder) {
  const nlohmann::json index = index_of(folder);
  for (const auto& row : index) {
    SCOPED_TRACE(row.at("case").get<std::string>());
    EXPECT_NO_THROW(read_case(folder, row.at("case"), row.at("op")));
  }
  return index.size();
}

TEST(recorded_files, of_the_project_read_without_a_note) { EXPECT_GE(read_all(testing::carried_recordings()), 3U); }

TEST(recorded_files, of_the_external_folder_read_without_a_note) {
  const std::filesystem::path folder = testing::external_recordings();
  if (folder.empty()) GTEST_SKIP() << "no folder of recordings; name one in DELTAPROOF_RECORDINGS";
  EXPECT_GE(read_all(folder), 1U);
}

}  // namespace
}  // namespace deltaproof
