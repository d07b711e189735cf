// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "deltaproof/support/errors.hpp"
#include "files/parse.hpp"

namespace deltaproof {
namespace {

using testing::parse;

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const format_error& e) {
    return e.what();
  }
  return "nothing thrown";
}

class safetensors : public ::testing::Test {
 protected:
  safetensors() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::temp_directory_path() / ("deltaproof-" + std::string(info->name()) + "-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~safetensors() override { std::filesystem::remove_all(folder_); }

  std::size_t files() const { return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }

  std::filesystem::path folder_;
};

std::vector<tensor> some_tensors() {
  return {tensor::from_doubles(bf16, {2, 2}, std::vector<double>{1, -2, 0.5, -0.0}, "b"),
          tensor::from_integers({3}, std::vector<std::int64_t>{0, -1, 7}, "a"),
          tensor::from_doubles(fp64, {}, std::vector<double>{0.1}, "scalar"),
          tensor::from_doubles(fp16, {0, 5}, std::vector<double>{}, "empty"),
          tensor::from_doubles(e4m3, {1}, std::vector<double>{448}, "eight bits")};
}

TEST_F(safetensors, gives_back_what_was_written_in_its_order) {
  const safetensors_metadata metadata{{"z", "1"}, {"a", "\"quotes\", \n and \xc3\xa9"}, {"", ""}};
  const std::vector<tensor> tensors = some_tensors();
  const safetensors_file file = parse(safetensors_bytes(metadata, tensors));
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(file.entries()[i].name, tensors[i].name());
    EXPECT_TRUE(same_bits(file.load(file.entries()[i]), tensors[i])) << tensors[i].name();
    EXPECT_EQ(file.find(tensors[i].name()), &file.entries()[i]);
  }
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(file.metadata("z"), "1");
  EXPECT_EQ(file.metadata("y"), std::nullopt);
  EXPECT_EQ(safetensors_bytes(file.metadata(), tensors), safetensors_bytes(metadata, tensors));
}

TEST_F(safetensors, begins_its_data_at_a_multiple_of_eight) {
  for (std::size_t length = 0; length < 16; ++length) {
    const std::string bytes = safetensors_bytes({{"key", std::string(length, 'x')}}, some_tensors());
    const auto header = static_cast<unsigned char>(bytes[0]) + 256U * static_cast<unsigned char>(bytes[1]);
    EXPECT_EQ(header % 8, 0U);
    EXPECT_EQ(parse(bytes).bytes().size(), bytes.size());
  }
}

TEST_F(safetensors, writes_known_bytes) {
  const std::vector<tensor> one{tensor::from_doubles(bf16, {2}, std::vector<double>{1, 2}, "q")};
  const std::string header = R"({"__metadata__":{"format":"f"},"q":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string length{static_cast<char>(padded.size()), 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(safetensors_bytes({{"format", "f"}}, one), length + padded + std::string("\x80\x3f\x00\x40", 4));
}

TEST_F(safetensors, refuses_to_write_what_it_would_not_read) {
  const std::vector<tensor> tensors = some_tensors();
  const auto write = [](const safetensors_metadata& metadata, const std::vector<tensor>& list) {
    return message_of([&] { (void)safetensors_bytes(metadata, list); });
  };
  EXPECT_NE(write({}, {tensors[0], tensors[1].named("b")}).find("\"b\" is given twice; give each tensor its own name"),
            std::string::npos);
  EXPECT_NE(write({}, {tensors[0].named("__metadata__")}).find("reserved name; give it another"), std::string::npos);
  EXPECT_NE(write({}, {tensors[0].named("")}).find("no name"), std::string::npos);
  EXPECT_NE(write({}, {tensors[0].named("\xff")}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(write({{"k", "\xff"}}, {}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(write({{"k", "1"}, {"k", "2"}}, {}).find("\"k\" is given twice"), std::string::npos);
}

TEST_F(safetensors, writes_by_renaming_and_leaves_nothing_else) {
  const std::filesystem::path path = folder_ / "file";
  write_safetensors(path, {{"k", "1"}}, {});
  write_safetensors(path, {{"k", "2"}}, some_tensors());
  EXPECT_EQ(contents(path), safetensors_bytes({{"k", "2"}}, some_tensors()));
  EXPECT_EQ(read_safetensors(path).metadata("k"), "2");
  EXPECT_EQ(files(), 1U);
}

TEST_F(safetensors, keeps_links_and_devices) {
  const std::filesystem::path target = folder_ / "target";
  const std::filesystem::path link = folder_ / "link";
  write_safetensors(target, {{"k", "1"}}, {});
  std::filesystem::create_symlink(target, link);
  write_safetensors(link, {{"k", "2"}}, {});
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_safetensors(target).metadata("k"), "2");
  write_safetensors("/dev/null", {{"k", "1"}}, {});
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(safetensors, says_why_a_file_cannot_be_written) {
  EXPECT_NE(message_of([&] { write_safetensors(folder_ / "no" / "file", {}, {}); }).find("does not exist; create it first"),
            std::string::npos);
  EXPECT_NE(message_of([&] { write_safetensors(folder_, {}, {}); }).find("directory"), std::string::npos);
  EXPECT_NE(message_of([&] { write_safetensors("/dev/full", {{"k", "1"}}, {}); }).find("No space"), std::string::npos);
  EXPECT_EQ(files(), 0U);
}

TEST_F(safetensors, says_why_a_file_cannot_be_read) {
  EXPECT_NE(message_of([&] { (void)read_safetensors(folder_ / "none"); }).find("no such file"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)read_safetensors(folder_); }).find("is a folder"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)read_safetensors("/dev/null"); }).find("not a regular file"), std::string::npos);
  std::ofstream(folder_ / "empty");
  EXPECT_NE(message_of([&] { (void)read_safetensors(folder_ / "empty"); }).find("it is empty"), std::string::npos);
  std::ofstream(folder_ / "locked") << "x";
  std::filesystem::permissions(folder_ / "locked", std::filesystem::perms::none);
  const std::string said = message_of([&] { (void)read_safetensors(folder_ / "locked"); });
  EXPECT_TRUE(said.find("permissions") != std::string::npos || said.find("truncated") != std::string::npos)
      << said;  // root reads all
}

TEST_F(safetensors, says_when_a_file_does_not_fit_in_memory) {
  const std::filesystem::path path = "/dev/shm/deltaproof-sparse-" + std::to_string(::getpid());
  // A header that fits the size, of 2^60 bytes less it: what is wrong with a header is said before room is looked for.
  const std::string shape = "[" + std::to_string((std::uintmax_t{1} << 60) - 8 - 96) + "]";
  std::string header = R"({"x":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":[0,)" + shape.substr(1) + "}}";
  header.resize(96, ' ');
  std::ofstream(path) << std::string{96, 0, 0, 0, 0, 0, 0, 0} + header;
  std::error_code error;
  std::filesystem::resize_file(path, std::uintmax_t{1} << 60, error);
  const std::string said = error ? "" : message_of([&] { (void)read_safetensors(path); });
  std::filesystem::remove(path, error);
  if (said.empty()) GTEST_SKIP() << "no file system in memory for a sparse file of 2^60 bytes";
  EXPECT_NE(said.find("do not fit in memory"), std::string::npos) << said;
}

TEST_F(safetensors, hashes_as_published) {
  const auto hash = [](std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); };
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace deltaproof
