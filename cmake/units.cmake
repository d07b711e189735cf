# Small files of one subject that read the same headers are compiled together: most of a unit's time goes into its headers, and
# those who fetch the library compile it once. Each file still stands alone (syntax.sh sources, in tests/house, compiles it so). A
# file that no line names is a unit of its own.
#   deltaproof_group(TARGET NAME FILE...)   files below src/, without .cpp
function(deltaproof_group target name)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/)
  list(TRANSFORM ARGN APPEND .cpp)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${name})
endfunction()

# What a verdict waits for: -O3.
deltaproof_group(deltaproof_engines number number/canary number/elementary support/printable number/random support/text scan/chunk_bounds)
deltaproof_group(deltaproof_engines algebra algebra/growth support/mapped_bytes algebra/tensor algebra/tensor_view)
deltaproof_group(deltaproof_engines oracle_gradients oracle/gradients/chain oracle/gradients/elements
  oracle/gradients/exact_bits)
deltaproof_group(deltaproof_engines oracle_answer oracle/solve/answer oracle/solve/fresh oracle/solve/solve)
deltaproof_group(deltaproof_engines oracle_problem oracle/inspect oracle/measure oracle/problem)
deltaproof_group(deltaproof_engines oracle_lower oracle/lower oracle/solve/row_by_row)
deltaproof_group(deltaproof_engines oracle_integers oracle/tiers/integer_rows oracle/tiers/integer_steps)
deltaproof_group(deltaproof_engines emulate emulate/emulate check/eager emulate/products)
deltaproof_group(deltaproof_engines faults_of_inputs emulate/faults emulate/faults_gates emulate/faults_heads
  emulate/faults_inputs)
deltaproof_group(deltaproof_engines faults_of_results emulate/faults_chunk emulate/faults_output emulate/faults_precision
  emulate/faults_recurrent emulate/faults_state)
deltaproof_group(deltaproof_engines stages_backward stages/backward stages/backward_inner)
deltaproof_group(deltaproof_engines stages stages/stages stages/finer stages/gram stages/inverse stages/roundings)
deltaproof_group(deltaproof_engines stages_of_heads stages/head stages/head_measurement stages/head_stages
  stages/head_cache stages/head_state stages/parts stages/tally)
deltaproof_group(deltaproof_engines backward emulate/backward_group emulate/emulate_gradients emulate/filling
  emulate/reference_gradients emulate/step_slopes)
deltaproof_group(deltaproof_engines backward_faults emulate/backward_faults_chunk emulate/backward_faults_heads
  emulate/backward_faults_states)
deltaproof_group(deltaproof_engines draws_of_gradients referee/gradients_draws referee/gradients_lanes)
deltaproof_group(deltaproof_engines faults_of_gradients referee/backward_stages referee/fault_projections referee/gradients_faults
  referee/gradients_judge referee/place_cost)
deltaproof_group(deltaproof_engines draws referee/draws referee/lanes referee/leave_out referee/overflow referee/reach)

# What runs once a verdict. Files that read JSON go together, and so do those that read TOML: a unit that does costs five seconds more.
deltaproof_group(deltaproof_plain plan plan/plan plan/plan_variants)
deltaproof_group(deltaproof_plain toml plan/plan_sense plan/plan_toml plan/state_cache_toml check/suite_toml sweep/campaign_toml)
deltaproof_group(deltaproof_plain regimes inputs/regimes inputs/regime_keys inputs/regime_law inputs/regime_laws)
deltaproof_group(deltaproof_plain files support/read_file files/safetensors files/exchange files/exchange_write files/slice
  files/state_exchange files/view files/golden files/golden_file files/golden_gradients)
deltaproof_group(deltaproof_plain check check/check check/check_coverage check/check_text check/check_unread check/check_gradients)
deltaproof_group(deltaproof_plain views check/advise_views check/check_views check/invariant_set check/invariant_views
  check/record_json check/suite_views check/witness check/witness_files sweep/campaign sweep/folder sweep/merge
  sweep/merge_views sweep/shard sweep/task sweep/workers)
deltaproof_group(deltaproof_plain invariant check/invariant check/invariant_packing check/invariant_parts
  check/invariant_same check/invariant_states check/invariant_cp check/invariant_flush check/state_equations)
deltaproof_group(deltaproof_plain identities check/gradient_identities check/identity_equations)
deltaproof_group(deltaproof_plain advise check/advise check/advise_chunks check/advise_states)
deltaproof_group(deltaproof_plain suite support/nearest_name check/request check/suite)
deltaproof_group(deltaproof_plain inverses inverse/inverse_runs_16_bit inverse/inverse_runs_mixed inverse/inverse_runs_wide)
deltaproof_group(deltaproof_plain referee referee/adequacy referee/budget referee/coarser_state referee/epsilon referee/faults
  referee/judging referee/planned_runs referee/referee referee/suspects)
deltaproof_group(deltaproof_plain testing testing/problem_case testing/trial)
deltaproof_group(deltaproof_engines inverse_trial inverse/inverse_inputs inverse/inverse_trial)

# A study, or part of a large one, is a unit.
if(DELTAPROOF_RESEARCH)
  # Names of this one are names of others in its folder as well.
  list(FILTER research_sources EXCLUDE REGEX "eigenvalues/rules")
  foreach(source IN LISTS research_sources)
    string(REGEX REPLACE "^src/(.*)[.]cpp$" "\\1" file ${source})
    string(REGEX REPLACE "^studies/([a-z_0-9]+)(/.*)?$" "studies/\\1/" folder ${file})
    string(REGEX REPLACE "/[a-z_0-9]*$" "" folder ${folder})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    math(EXPR part "(${count_${folder}} - 1) / 15")
    deltaproof_group(deltaproof_research ${folder}_${part} ${file})
  endforeach()
endif()
