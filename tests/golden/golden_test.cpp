// Runs the real program on small recordings and compares its output, byte by byte, with the files in expected/. After
// an intended change: TIDEMARK_UPDATE_GOLDEN=1, then read the difference before committing it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "golden/recordings.h"

namespace tidemark {
namespace {

struct Case {
  const char* name;  // of the file in expected/
  const char* arguments;
  int exit_code = 0;
};

void PrintTo(const Case& golden, std::ostream* out) {
  *out << golden.name;
}

constexpr Case kCases[] = {
    {"summary.txt", "summary training.tide"},
    {"summary_all.txt", "summary training.tide --all"},
    {"summary.json", "summary training.tide --format json"},
    {"summary_device.txt", "summary training.tide --device cpu --top 1"},
    {"summary_ranks.txt", "summary rank0.tide rank1.tide --top 2"},
    {"summary_ranks.json", "summary rank0.tide rank1.tide --top 1 --format json"},
    {"summary_job.txt", "summary job.rank*.tide"},
    {"summary_job_rank.txt", "summary job.rank*.tide --rank 0 --top 1"},
    {"summary_job_rank.json", "summary job.rank*.tide --rank 3 --top 1 --format json"},
    {"error_rank.txt", "summary job.rank*.tide --rank 9", 2},
    {"summary_hostile.txt", "summary hostile.tide"},
    {"summary_hostile_all.txt", "summary hostile.tide --all"},
    {"summary_hostile.json", "summary hostile.tide --format json"},
    {"summary_empty.txt", "summary empty.tide"},
    {"summary_killed.txt", "summary killed.tide"},
    {"summary_ledger.txt", "summary shared_gpu.tide --top 1"},
    {"summary_ledger_all.txt", "summary shared_gpu.tide --top 1 --all"},
    {"summary_ledger.json", "summary shared_gpu.tide --top 1 --device cuda:0 --format json"},
    {"summary_devices.txt", "summary devices.tide"},
    {"table_devices.txt", "table devices.tide"},
    {"table_devices_end.txt", "table devices.tide --by device --at end"},
    {"tree_devices.txt", "tree devices.tide"},
    {"timeline_devices.txt", "timeline devices.tide"},
    {"timeline_driver.txt", "timeline shared_gpu.tide"},
    {"timeline_driver.json", "timeline shared_gpu.tide --format json --points 16"},
    {"patterns_devices.txt", "patterns devices.tide"},
    {"table_stack.txt", "table training.tide"},
    {"table_stack.json", "table training.tide --format json --top 2"},
    {"table_stack.csv", "table training.tide --format csv"},
    {"table_size.txt", "table training.tide --by size --at 55%"},
    {"table_device.txt", "table training.tide --by device"},
    {"table_device.csv", "table training.tide --by device --format csv"},
    {"table_thread.txt", "table rank0.tide rank1.tide --by thread --at 20ms"},
    {"table_thread.csv", "table rank0.tide rank1.tide --by thread --at 20ms --format csv"},
    {"table_end.txt", "table training.tide --at end"},
    {"table_hostile.csv", "table hostile.tide --format csv"},
    {"breakdown.txt", "breakdown layers.tide"},
    {"breakdown.json", "breakdown layers.tide --format json"},
    {"breakdown_layers.txt", "breakdown layers.tide --by layer --at 50ms"},
    {"breakdown_modules.csv", "breakdown layers.tide --by module --format csv"},
    {"breakdown_filter.txt", "breakdown layers.tide --category activation --by step"},
    {"error_breakdown.txt", "breakdown training.tide --by module", 2},
    {"layers_summary.txt", "summary layers.tide"},
    {"layers_summary.json", "summary layers.tide --format json"},
    {"layers_summary_filter.txt", "summary layers.tide --by module --category activation --top 3"},
    {"layers_summary_phase.json", "summary layers.tide --by phase --top 2 --format json"},
    {"layers_compare.txt", "compare layers.tide layers.tide --group-by category --module layers.1"},
    {"layers_compare_phases.json",
     "compare layers.tide layers.tide --group-by phase --by traffic --format json --top 2"},
    {"layers_table.txt", "table layers.tide"},
    {"layers_table_module.txt", "table layers.tide --by module"},
    {"layers_table_phase.json", "table layers.tide --by phase --format json"},
    {"layers_table_filter.txt", "table layers.tide --module 'layers.1' --phase backward"},
    {"layers_tree.txt", "tree layers.tide --module 'layers.*.mlp' --category activation"},
    {"layers_tree_module.txt", "tree layers.tide --by module"},
    {"layers_tree_phase.txt", "tree layers.tide --by phase --depth 3"},
    {"layers_temporary.txt", "temporary layers.tide --phase forward"},
    {"layers_timeline.txt", "timeline layers.tide --by category"},
    {"layers_timeline.csv", "timeline layers.tide --by category --format csv --points 8"},
    {"layers_timeline.json", "timeline layers.tide --by phase --category activation --format json --points 8"},
    {"layers_export.csv", "export layers.tide --to csv -o -"},
    {"layers_speedscope.json", "export layers.tide --to speedscope"},
    {"error_table_module.txt", "table training.tide --by module", 2},
    {"error_filter_module.txt", "table layers.tide --module layers.7", 2},
    {"tree.txt", "tree training.tide"},
    {"tree.json", "tree training.tide --format json"},
    {"tree_count.txt", "tree training.tide --by-count --depth 2 --min-share 0"},
    {"tree_empty.txt", "tree empty.tide"},
    {"temporary.txt", "temporary training.tide --within 2"},
    {"temporary.json", "temporary training.tide --within 2 --format json --top 1"},
    {"temporary.csv", "temporary training.tide --within 2 --format csv"},
    {"temporary_none.txt", "temporary training.tide --within 0"},
    {"patterns.txt", "patterns leaking.tide --top 3"},
    {"patterns.json", "patterns training.tide --format json --top 1"},
    {"leaks.txt", "leaks leaking.tide"},
    {"leaks.json", "leaks leaking.tide --format json"},
    {"table_step.txt", "table leaking.tide --by device --at step:3"},
    {"error_no_step.txt", "table leaking.tide --at step:24", 2},
    {"error_no_steps.txt", "tree training.tide --at step:0", 2},
    {"leaks_fail.txt", "leaks leaking.tide --fail-on-leak --top 1 --warmup 4", 1},
    {"leaks_all.txt", "leaks leaking.tide --min-growth 0"},
    {"leaks_min_growth.txt", "leaks leaking.tide --min-growth 10KiB/step --fail-on-leak"},
    {"error_min_growth.txt", "leaks leaking.tide --min-growth 1%", 2},
    {"leaks_graph.txt", "leaks retaining.tide --by module"},
    {"leaks_graph.json", "leaks retaining.tide --by category --format json --top 2"},
    {"patterns_graph.txt", "patterns retaining.tide --top 1"},
    {"temporary_module.txt", "temporary layers.tide --by module"},
    {"temporary_module.csv", "temporary layers.tide --by module --format csv"},
    {"temporary_module.json", "temporary layers.tide --by phase --format json"},
    {"leaks_few_steps.txt", "leaks training.tide --fail-on-leak"},
    {"leaks_empty.txt", "leaks empty.tide"},
    {"snapshot_leaks.txt", "leaks small.pickle"},
    {"snapshot_leaks.json", "leaks small.pickle --format json --device cuda:0"},
    {"snapshot_temporary.txt", "temporary small.pickle"},
    {"snapshot_temporary.json", "temporary small.pickle --format json --device cuda:0"},
    {"compare.txt", "compare rank0.tide rank1.tide"},
    {"compare.json", "compare rank0.tide rank1.tide --format json --top 1 --device cuda:0"},
    {"compare_traffic.txt", "compare rank0.tide rank1.tide --by traffic"},
    {"compare_hostile.txt", "compare rank0.tide hostile.tide --device cpu"},
    {"compare_same.txt", "compare training.tide training.tide --fail-over 0%"},
    {"compare_over.txt", "compare rank0.tide rank1.tide --device cuda:0 --top 1 --fail-over 5%", 1},
    {"compare_over.json", "compare rank0.tide training.tide --top 1 --fail-over 2.5MiB --format json", 1},
    {"compare_within.txt", "compare rank0.tide rank1.tide --device cuda:0 --top 1 --fail-over 12MiB"},
    {"snapshot_compare.txt", "compare training.tide small.pickle --fail-over 100MiB"},
    {"snapshot_compare_late.txt", "compare late.pickle.xz private_pools.pickle.xz --top 4 --ignore-lines"},
    {"error_compare_empty.txt", "compare training.tide empty.tide --fail-over 5%", 2},
    {"error_compare_device.txt", "compare training.tide small.pickle --device cuda:9", 2},
    {"error_compare_limit.txt", "compare training.tide small.pickle --fail-over lots", 2},
    {"timeline.txt", "timeline training.tide"},
    {"timeline.csv", "timeline rank0.tide rank1.tide --format csv"},
    {"timeline_call_sites.txt", "timeline training.tide --by call-site --device cuda:0"},
    {"timeline_call_sites.csv", "timeline training.tide --by call-site --device cuda:0 --format csv --points 8"},
    {"timeline_call_sites.json", "timeline training.tide --by call-site --device cuda:0 --format json --points 8"},
    {"timeline.json", "timeline training.tide --format json --points 16"},
    {"snapshot_summary.txt", "summary small.pickle"},
    {"snapshot_summary.json", "summary small.pickle --format json --device cuda:0"},
    {"snapshot_late.txt", "summary late.pickle.xz"},
    {"snapshot_and_recording.txt", "summary small.pickle training.tide --top 1"},
    {"snapshot_pools.txt", "table private_pools.pickle.xz --by pool"},
    {"snapshot_pools.json", "table private_pools.pickle.xz --by pool --format json --at 50%"},
    {"snapshot_streams.csv", "table small.pickle --by stream --format csv"},
    {"snapshot_annotations.txt", "table small.pickle --by annotation"},
    {"snapshot_annotations.json", "table small.pickle --by annotation --at \"step 0\" --format json --device cuda:0"},
    {"snapshot_annotations.csv", "table small.pickle --by annotation --format csv"},
    {"error_no_mark.txt", "tree small.pickle --at \"step 0@2\"", 2},
    {"error_no_marks.txt", "fragmentation small.pickle late.pickle.xz --at \"step 0\"", 2},
    {"snapshot_tree.txt", "tree small.pickle --at end --min-share 0"},
    {"snapshot_timeline.csv", "timeline small.pickle --format csv"},
    {"export_speedscope.json", "export training.tide --to speedscope"},
    {"export.csv", "export training.tide --to csv --device cpu -o -"},
    {"snapshot_export_speedscope.json", "export small.pickle --to speedscope --at end"},
    {"snapshot_export.csv", "export small.pickle --to csv -o blocks.csv && cat blocks.csv"},
    {"error_export_moment.txt", "export small.pickle --to csv --at end", 2},
    {"error_export_itself.txt", "export small.pickle --to csv -o ./small.pickle", 2},
    {"ledger.txt", "ledger shared_gpu.tide"},
    {"ledger.json", "ledger shared_gpu.tide --format json --at 25%"},
    {"ledger_end.txt", "ledger shared_gpu.tide training.tide --at end"},
    {"ledger_empty.txt", "ledger empty.tide"},
    {"snapshot_ledger.txt", "ledger small.pickle"},
    {"libraries_summary.txt", "summary libraries.pickle"},
    {"libraries_tree.txt", "tree libraries.pickle"},
    {"libraries_leaks.txt", "leaks libraries.pickle"},
    {"libraries_breakdown.txt", "breakdown libraries.pickle"},
    {"error_json.txt", "summary report.json", 2},
    {"error_torch_save.txt", "leaks model.pt", 2},
    {"error_other_pickle.txt", "compare other.pickle small.pickle", 2},
    {"error_pickle_of_objects.txt", "summary objects.pickle", 2},
    {"error_dump_snapshot.txt", "dump small.pickle", 2},
    {"error_ledger_device.txt", "ledger shared_gpu.tide --device cuda:1", 2},
    {"explain.txt", "explain oom_fragmentation.pickle.xz"},
    {"explain.json", "explain oom_other_process.pickle.xz --capacity 79.18GiB --format json"},
    {"explain_all.txt", "explain oom_fragmentation.pickle.xz --all"},
    {"explain_hostile_all.txt", "explain hostile.tide --all"},
    {"explain_categories.txt", "explain oom_leak.pickle.xz --by category"},
    {"explain_filter.json", "explain oom_leak.pickle.xz --category workspace --top 1 --format json"},
    {"explain_pools.txt", "explain oom_private_pool.pickle.xz --capacity 79.18GiB"},
    {"explain_capture.txt", "explain oom_capture.pickle.xz"},
    {"explain_leak.txt", "explain oom_leak.pickle.xz --top 3"},
    {"explain_limit.txt", "explain oom_limit.pickle.xz"},
    {"explain_retried.txt", "explain oom_retried.pickle.xz --failures 1"},
    {"explain_simulated.txt", "explain oom_fragmentation.pickle.xz --top 1 --simulate model"},
    {"explain_small.txt", "explain small.pickle"},
    {"explain_recording.txt", "explain training.tide"},
    {"explain_hostile.txt", "explain hostile.tide"},
    {"explain_hostile.json", "explain hostile.tide --format json"},
    {"restart_leak.txt", "restart oom_leak.pickle.xz"},
    {"restart_leak.json", "restart oom_leak.pickle.xz --format json"},
    {"restart_fragmentation.txt",
     "restart oom_fragmentation.pickle.xz --simulate model --apply batch=-b -- python train.py -b 8"},
    {"restart_limit.txt", "restart oom_limit.pickle.xz"},
    {"restart_job.txt", "restart job.rank*.tide"},
    {"restart_job.json", "restart job.rank*.tide --format json --apply batch=--batch-size"},
    {"restart_none.txt", "restart rank0.tide rank1.tide"},
    {"restart_host.txt", "restart host.tide"},
    {"restart_hostile.txt", "restart hostile.tide"},
    {"error_restart_apply.txt", "restart job.rank3.tide --apply rate=--lr", 2},
    {"explain_none.txt", "explain private_pools.pickle.xz --capacity 1GiB"},
    {"explain_empty.txt", "explain empty.tide"},
    {"host_summary.txt", "summary host.tide --all"},
    {"host_summary_short.txt", "summary host.tide"},
    {"host_summary.json", "summary host.tide --format json"},
    {"host_ledger.txt", "ledger host.tide --device host"},
    {"host_ledger_at.txt", "ledger host.tide --at 150ms"},
    {"host_ledger.json", "ledger host.tide --format json"},
    {"host_timeline.txt", "timeline host.tide"},
    {"host_timeline.json", "timeline host.tide --format json --points 8"},
    {"host_explain.txt", "explain host.tide"},
    {"host_explain.json", "explain host.tide --format json"},
    {"host_dump.txt", "dump host.tide"},
    {"host_hostile.txt", "ledger host_hostile.tide"},
    {"host_hostile.json", "summary host_hostile.tide --format json"},
    {"error_explain_capacity.txt", "explain small.pickle --capacity 5%", 2},
    {"fragmentation_all.txt", "fragmentation small.pickle --all"},
    {"fragmentation.txt", "fragmentation small.pickle --top 2"},
    {"fragmentation_pools.txt", "fragmentation private_pools.pickle.xz --at 50% --top 4"},
    {"fragmentation.json", "fragmentation small.pickle --format json --device cuda:1"},
    {"fragmentation_filter.txt", "fragmentation late.pickle.xz --by category --category input --top 2"},
    {"fragmentation_simulated.txt", "fragmentation private_pools.pickle.xz --top 1 --simulate model"},
    {"fragmentation_recording.txt", "fragmentation training.tide"},
    {"fragmentation_growing.txt", "fragmentation fragmenting.tide"},
    {"fragmentation_growing.json", "fragmentation fragmenting.tide --format json"},
    {"fragmentation_growing_simulated.txt", "fragmentation fragmenting.tide --simulate model"},
    {"fragmentation_held_peak.txt", "fragmentation held_peak.tide"},
    {"simulate.txt", "simulate private_pools.pickle.xz --allocator model --set expandable_segments:True"},
    {"simulate.json", "simulate oom_limit.pickle.xz --allocator model --set expandable_segments:True --format json"},
    {"simulate_search.txt", "simulate oom_limit.pickle.xz --allocator model --search"},
    {"simulate_late.txt", "simulate late.pickle.xz --allocator model --set max_split_size_mb:32 --memory 1GiB"},
    {"simulate_recording.txt",
     "simulate training.tide --allocator model --recorded max_split_size_mb:64 --set max_split_size_mb:32 --set "
     "no_such:1"},
    {"error_simulate_setting.txt", "simulate small.pickle --allocator model --set expandable_segments", 2},
    {"error_simulate_backend.txt", "simulate small.pickle --allocator model --set backend:cudaMallocAsync", 2},
    {"error_simulate_device.txt", "simulate small.pickle --allocator model --device cpu", 2},
    {"error_simulate_python.txt", "simulate small.pickle --python ./no-such-python --search", 2},
    {"completion_devices.txt", "completion devices training.tide nowhere.tide notes.txt . small.pickle"},
    {"completion_marks.txt", "completion marks -- marked.tide small.pickle damaged.tide"},
    {"error_no_pools.txt", "table training.tide --by pool", 2},
    {"error_missing.txt", "summary nowhere.tide", 2},
    {"error_device.txt", "table training.tide --device cuda:9", 2},
    {"error_foreign.txt", "dump notes.txt", 2},
    {"error_damaged.txt", "dump damaged.tide", 2},
    {"model.txt", "model model.safetensors --oversized 24"},
    {"model.json", "model model.safetensors --format json --oversized 24"},
    {"model.csv", "model model.safetensors adapter --format csv"},
    {"model_adapter.txt", "model adapter"},
    {"model_adapter.json", "model adapter/adapter_model.safetensors --format json"},
    {"error_model_cut.txt", "model cut.safetensors", 2},
    {"error_model_foreign.txt", "model training.tide", 2},
    {"error_model_index.txt", "model adapter/adapter_config.json", 2},
    {"help.txt", "help"},
    {"help_run.txt", "help run"},
    {"help_breakdown.txt", "breakdown --help"},
    {"help_export.txt", "export --help"},
    {"help_timeline.txt", "timeline --help"},
    {"help_profile.txt", "profile --help"},
    {"help_oom.txt", "oom --help"},
    {"help_leak.txt", "leak --help"},
    {"help_fragment.txt", "fragment --help"},
    {"help_exporter.txt", "exporter --help"},
    {"help_history.txt", "history --help"},
    {"error_history.txt", "history training.tide", 2},
    {"error_listen.txt", "exporter --listen 0.0.0.0:9400", 2},
};

class Golden : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    // One for each process: ctest runs the cases in a few processes, concurrently.
    folder_ = ::testing::TempDir() + "tidemark_golden." + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    testing::write_golden_recordings(folder_);
    for (const char* name :
         {"small.pickle", "libraries.pickle", "late.pickle.xz", "private_pools.pickle.xz",
          "oom_fragmentation.pickle.xz", "oom_other_process.pickle.xz", "oom_private_pool.pickle.xz",
          "oom_capture.pickle.xz", "oom_leak.pickle.xz", "oom_limit.pickle.xz", "oom_retried.pickle.xz"}) {
      std::filesystem::copy_file(std::string(SNAPSHOT_FOLDER "/") + name, folder_ + "/" + name);
    }
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }
  static std::string folder_;
};

std::string Golden::folder_;

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST_P(Golden, OutputIsAsExpected) {
#ifdef TIDEMARK_SPAWN_NEVER_FAILS
  if (GetParam().name == std::string("error_simulate_python.txt")) {
    GTEST_SKIP() << "posix_spawn() does not fail with ThreadSanitizer";
  }
#endif
  const std::string command =
      "cd '" + folder_ + "' && '" TIDEMARK_PROGRAM "' " + GetParam().arguments + " 2>&1 < /dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), count);
  const int status = pclose(pipe);
  EXPECT_EQ(WEXITSTATUS(status), GetParam().exit_code);
  const std::string expected = std::string(GOLDEN_FOLDER "/") + GetParam().name;
  if (std::getenv("TIDEMARK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(expected, std::ios::binary) << output;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(expected)) << expected;
  EXPECT_EQ(output, read(expected));
}

INSTANTIATE_TEST_SUITE_P(Commands, Golden, ::testing::ValuesIn(kCases), [](const auto& param) {
  std::string name = param.param.name;
  for (char& letter : name) letter = letter == '.' ? '_' : letter;
  return name;
});

}  // namespace
}  // namespace tidemark
