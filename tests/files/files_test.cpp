// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "deltaproof/files/safetensors.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"
#include "support/printable.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;
using deltaproof::testing::thrown;
using ::testing::HasSubstr;

class files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("deltaproof-files-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string read(const fs::path& name) const { return read_file(folder_ / name, verdict_limit); }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }

  fs::path folder_;
};

TEST_F(files, only_regular_ones_of_the_stated_size_are_read) {
  write_file(folder_ / "a", "four");
  EXPECT_EQ(read("a"), "four");
  EXPECT_THAT(thrown([&] { (void)read_file(folder_ / "a", {"a word", 3}); }),
              HasSubstr("a: has 4 bytes, and a word may have at most 3"));
  EXPECT_THAT(thrown([&] { (void)read("b"); }), HasSubstr("there is no such file"));
  EXPECT_THAT(thrown([&] { (void)read("a/b"); }), HasSubstr("there is no such file"));
  EXPECT_THAT(thrown([&] { (void)read("."); }), HasSubstr("is a folder"));
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(thrown([&] { (void)read("pipe"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(thrown([&] { (void)read("/dev/zero"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(thrown([&] { (void)read_safetensors(folder_ / "pipe"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(thrown([&] { (void)read(std::string("a\0b", 3)); }), HasSubstr("no file name may contain a NUL character"));
}

TEST_F(files, depth_is_that_of_brackets_and_dots_outside_texts_and_comments) {
  const std::string lists(64, '['), ends(64, ']'), more(1000, '[');
  EXPECT_NO_THROW(detail::require_shallow_json("{\"a\": \"" + more + "\\\"" + more + "\"}", "x"));
  EXPECT_NO_THROW(detail::require_shallow_json(lists + ends + lists + ends, "x"));
  EXPECT_THAT(thrown([&] { detail::require_shallow_json("[\n" + lists, "x"); }), HasSubstr("x: line 2: nests deeper than 64"));
  std::string dots;
  for (int i = 0; i < 64; ++i) dots += "a.";
  const std::string deep = "a." + dots + "a = 1";
  for (const std::string& text :
       {dots + "a = 1\n", "# " + deep, "x = \"" + deep + "\"", "x = '" + deep + "'", "x = \"\"\"\n" + deep + "\"\"\"\"\"",
        "x = '''\n" + deep + "'''''", "x = [" + dots + "1, " + dots + "1]", "\"" + deep + "\" = 1"}) {
    EXPECT_NO_THROW(detail::require_shallow_toml(text, "x")) << text;
  }
  EXPECT_NO_THROW(detail::require_shallow_toml("\xEF\xBB\xBF# \xC3\xA9\nx = '\xC3\xA9'\n", "x"));
  EXPECT_THAT(thrown([&] { detail::require_shallow_toml("a = 1\n\xC3\xA9 = 1\n", "x"); }),
              HasSubstr("x: line 2: not valid TOML"));
  for (const std::string& text :
       {deep, "[" + dots + "a.a]", "x = {y = 1, " + deep + "}", "x = \"\\\"\"\n" + deep, "x = \"\"\"a\"\"\"\"\" #\n" + deep,
        "t = {x = \"\"\"a\"\"\"\", " + deep + "}", "x = '\\'\n" + deep, "x = [[" + lists}) {
    EXPECT_THAT(thrown([&] { detail::require_shallow_toml(text, "x"); }), HasSubstr("nests deeper")) << text;
  }
}

TEST_F(files, writers_of_one_process_do_not_mix) {
  std::vector<std::thread> writers;
  std::atomic<int> wrong{0};
  for (char c = 'a'; c < 'i'; ++c) {
    writers.emplace_back([&, c] {
      for (int i = 0; i < 50; ++i) {
        file_writer out(folder_ / "same");
        for (int piece = 0; piece < 20; ++piece) out.write(std::string(500, c));
        out.finish();
        const std::string got = read("same");
        if (got.size() != 10000 || got != std::string(got.size(), got[0])) ++wrong;
      }
    });
  }
  for (std::thread& w : writers) w.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(count(), 1U);
}

TEST_F(files, of_a_batch_appear_together_or_not_at_all) {
  write_file(folder_ / "a", "old");
  {
    file_batch batch;
    batch.add(folder_ / "a", "new");
    batch.add(folder_ / "b", "new");
    EXPECT_EQ(read("a"), "old");
    EXPECT_THAT(thrown([&] { batch.add(folder_ / "none" / "c", "new"); }), HasSubstr("cannot be written"));
  }
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(count(), 1U);
  file_batch batch;
  batch.add(folder_ / "a", "new");
  batch.add(folder_ / "b", "newer");
  batch.finish();
  EXPECT_EQ(read("a") + read("b"), "newnewer");
  EXPECT_EQ(count(), 2U);
}

TEST_F(files, that_may_not_grow_are_refused_and_leave_nothing) {
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto was = std::signal(SIGXFSZ, SIG_IGN);  // as the program has it
  const struct rlimit small{100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string says = thrown([&] { write_file(folder_ / "a", std::string(1000, 'x')); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, was);
  EXPECT_THAT(says, HasSubstr("a: cannot be written: File too large"));
  EXPECT_EQ(count(), 0U);
}

TEST(printable, spells_out_what_a_reader_would_not_see) {
  using detail::markup_escaped, detail::printable, detail::printable_line;
  EXPECT_EQ(printable("plain \xC3\xA9 \xE2\x80\x89 \xF0\x9F\x98\x80\n\t"), "plain \xC3\xA9 \xE2\x80\x89 \xF0\x9F\x98\x80\n\t");
  EXPECT_EQ(printable("\x1b[31m\x7f\r"), "\\x1b[31m\\x7f\\x0d");
  EXPECT_EQ(printable("\xC2\x9B"), "\\x9b");
  EXPECT_EQ(printable("\xE2\x80\xAE\xE2\x81\xA6\xEF\xBF\xBE\xEF\xBF\xBF\xEF\xBB\xBF"),
            "\\u{202e}\\u{2066}\\u{fffe}\\u{ffff}\\u{feff}");
  EXPECT_EQ(printable("\xF3\xA0\x80\x81"), "\\u{e0001}");
  // No UTF-8: a stray byte, an overlong form, a surrogate, one beyond the last code point, a cut one.
  EXPECT_EQ(printable("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(printable("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(printable("\xF4\x90\x80\x80").size(), 12U);
  EXPECT_EQ(printable("\xE2\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(printable_line("a\nb\tc"), "a\\x0ab\\x09c");
  EXPECT_EQ(markup_escaped("<a b=\"c\">&\xEF\xBF\xBE"), "&lt;a b=&quot;c&quot;&gt;&amp;\\u{fffe}");
}

}  // namespace
}  // namespace deltaproof
