# The ledger of claims, made from the files: src/claims/<subject>.toml, and its pages, src/claims/pages. Their text is part of
# the program, which needs no files beside it.
file(GLOB claim_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/claims/*.toml)
list(SORT claim_sources)
set(claim_entries "")
set(claim_count 0)
foreach(source IN LISTS claim_sources)
  get_filename_component(name ${source} NAME_WE)
  file(READ ${source} text)
  string(APPEND claim_entries "  {\"${name}\", R\"toml(${text})toml\"},\n")
  math(EXPR claim_count "${claim_count} + 1")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
endforeach()
foreach(page overview subject)
  file(READ ${PROJECT_SOURCE_DIR}/src/claims/pages/${page}.mustache text)
  set(claim_${page} "R\"page(${text})page\"")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/claims/pages/${page}.mustache)
endforeach()
set(claim_table ${PROJECT_BINARY_DIR}/generated/claim_table.cpp)
file(CONFIGURE OUTPUT ${claim_table} @ONLY CONTENT [[
#include <array>
#include "claims/text.hpp"
namespace deltaproof::claim_detail {
namespace {
constexpr std::array<embedded_file, @claim_count@> found{{
@claim_entries@}};
}  // namespace
std::span<const embedded_file> embedded_files() { return found; }
std::string_view overview_page() { return @claim_overview@; }
std::string_view subject_page() { return @claim_subject@; }
}  // namespace deltaproof::claim_detail
]])
target_sources(deltaproof_research PRIVATE ${claim_table})
