// `tidemark doctor` with faulty drivers: each line is true and contains the remedy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Line {
  std::string status;
  std::string text;
  std::string advice;
};

class DoctorTest : public ::testing::Test {
 protected:
  /// Lines of the check with that name. `environment` is for the shell: NAME=VALUE ...
  std::vector<Line> lines(const std::string& check, const json& script, const std::string& environment = "",
                          const std::string& nvml = FAKES_NVML_NEW) {
    const std::string command = "FAKES_NVML=" + folder_.write("nvml.json", script.dump()) + " LD_LIBRARY_PATH=" + nvml +
                                " " + environment + " " TIDEMARK_PROGRAM " doctor --format json -- " + interpreter_ +
                                " 2>/dev/null";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    std::string output;
    char part[4096];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof(part), pipe.get())) > 0;) output.append(part, got);
    const json report = json::parse(output);
    std::vector<Line> found;
    for (const json& line : report["checks"]) {
      const json& advice = line["advice"];
      if (line["name"] != check) continue;
      found.push_back({line["status"], line["text"], advice.is_null() ? "" : advice.get<std::string>()});
    }
    return found;
  }

  /// The only line of the check.
  Line line(const std::string& check, const json& script, const std::string& environment = "",
            const std::string& nvml = FAKES_NVML_NEW) {
    const std::vector<Line> found = lines(check, script, environment, nvml);
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Line{} : found.front();
  }

  static json gpu(const std::string& uuid) {
    return {{"name", "Fake H100"}, {"uuid", uuid}, {"memory", {{"total", 80 << 20}, {"used", 5 << 20}}}};
  }
  static json two_gpus() { return {{"driver", "580.1"}, {"devices", {gpu("GPU-1111"), gpu("GPU-2222")}}}; }
  /// With a function of the first GPU that returns an nvmlReturn_t.
  static json two_gpus(const std::string& function, int result) {
    json script = two_gpus();
    script["devices"][0]["returns"][function] = result;
    return script;
  }

  TemporaryFolder folder_;
  std::string interpreter_ = "/nowhere/python";
};

void expect_line(const Line& line, const char* status, const char* text, const char* advice) {
  EXPECT_EQ(line.status, status);
  EXPECT_THAT(line.text, HasSubstr(text));
  EXPECT_THAT(line.advice, HasSubstr(advice));
}

TEST_F(DoctorTest, HealthyDriver) {
  expect_line(line("driver", two_gpus()), "ok", "NVIDIA driver 580.1, CUDA 13.0; NVML works", "");
  const std::vector<Line> gpus = lines("gpu", two_gpus());
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[1].text, "GPU 1: Fake H100");
  EXPECT_EQ(gpus[1].status, "ok");
}

TEST_F(DoctorTest, DriverThatDoesNotStart) {
  expect_line(line("driver", {{"init", 9}}), "problem", "kernel driver is not loaded", "modprobe nvidia");
  expect_line(line("driver", {{"init", 4}}), "problem", "no permission to use the NVIDIA driver", "/dev/nvidiactl");
  expect_line(line("driver", {{"init", 18}}), "problem", "of different versions", "reboot");
  expect_line(line("driver", {{"init", 999}}), "problem", "does not start (NVML: scripted error (999))", "nvidia-smi");
  EXPECT_THAT(lines("gpu", {{"init", 9}}), IsEmpty());
}

TEST_F(DoctorTest, NvmlOfOldDrivers) {
  expect_line(line("driver", two_gpus(), "", FAKES_NVML_OLD), "ok", "NVIDIA driver 580.1; NVML works", "");
  const std::vector<Line> gpus = lines("gpu", two_gpus(), "", FAKES_NVML_OLD);
  ASSERT_THAT(gpus, SizeIs(2));
  expect_line(gpus[0], "ok", "GPU 0: Fake H100", "");
}

TEST_F(DoctorTest, DriverWithoutGpus) {
  expect_line(line("gpu", {{"devices", json::array()}}), "warning", "the driver lists no GPU for this process",
              "docker run --gpus all");
}

TEST_F(DoctorTest, UnsupportedFeatureIsNoProblem) {
  for (const char* function : {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetMemoryInfo_v2",
                               "nvmlDeviceGetComputeRunningProcesses_v3"}) {
    const std::vector<Line> gpus = lines("gpu", two_gpus(function, 3));
    ASSERT_THAT(gpus, SizeIs(2)) << function;
    EXPECT_EQ(gpus[0].status, "ok") << function;
  }
}

TEST_F(DoctorTest, UnknownMemoryIsAWarning) {
  json script = two_gpus("nvmlDeviceGetMemoryInfo_v2", 3);
  script["devices"][0]["returns"]["nvmlDeviceGetMemoryInfo"] = 3;
  const std::vector<Line> gpus = lines("gpu", script);
  ASSERT_THAT(gpus, SizeIs(2));
  expect_line(gpus[0], "warning", "GPU 0: Fake H100; the driver does not report how much of its memory is used",
              "tidemark ledger");
  EXPECT_EQ(gpus[1].status, "ok");
}

TEST_F(DoctorTest, LostGpuIsAProblemAndTheOthersAreNot) {
  const std::vector<Line> gpus = lines("gpu", two_gpus("nvmlDeviceGetTemperature", 15));
  ASSERT_THAT(gpus, SizeIs(2));
  expect_line(gpus[0], "problem", "GPU 0 (GPU-1111) does not answer any more (NVML: GPU is lost (15))",
              "nvidia-smi -q");
  EXPECT_EQ(gpus[1].status, "ok");
}

TEST_F(DoctorTest, GpuThatCannotBeOpened) {
  const std::vector<Line> forbidden = lines("gpu", two_gpus("nvmlDeviceGetHandleByIndex_v2", 4));
  ASSERT_THAT(forbidden, SizeIs(2));
  expect_line(forbidden[0], "problem", "no permission to use GPU 0", "/dev/nvidia0");
  const std::vector<Line> lost = lines("gpu", two_gpus("nvmlDeviceGetHandleByIndex_v2", 15));
  ASSERT_THAT(lost, SizeIs(2));
  EXPECT_EQ(lost[0].text, "GPU 0 does not answer (NVML: GPU is lost (15))");
  EXPECT_THAT(lost[0].advice, HasSubstr("dmesg"));
}

TEST_F(DoctorTest, MigInstances) {
  json script = two_gpus("nvmlDeviceGetMemoryInfo_v2", 3);
  script["devices"][0]["returns"]["nvmlDeviceGetMemoryInfo"] = 3;  // the value of a divided GPU is not needed
  script["devices"][0]["mig"] = json::array({gpu("MIG-3333")});
  const std::vector<Line> gpus = lines("gpu", script);
  ASSERT_THAT(gpus, SizeIs(3));
  expect_line(gpus[0], "ok", "GPU 0: Fake H100", "");
  expect_line(gpus[1], "ok", "GPU 0 instance 0: Fake H100", "");
}

TEST_F(DoctorTest, PyTorchAndTheDriversCuda) {
  interpreter_ = FAKES_PYTHON;
  folder_.write("torch/__init__.py", "");
  const auto line_for = [this](const char* torch_cuda, int driver_cuda) {
    folder_.write("torch/version.py", std::string("__version__ = '2.15.0'\ncuda = ") + torch_cuda + "\n");
    json script = two_gpus();
    script["cuda"] = driver_cuda;
    return lines("torch_cuda", script, "PYTHONPATH=" + folder_.path());
  };
  EXPECT_THAT(line_for("'13.0'", 13000), IsEmpty());
  EXPECT_THAT(line_for("'12.8'", 13000), IsEmpty());
  EXPECT_THAT(line_for("'12.8'", 12020), IsEmpty()) << "an older minor version will do";
  const std::vector<Line> newer = line_for("'13.0'", 12080);
  ASSERT_THAT(newer, SizeIs(1));
  expect_line(newer[0], "warning", "built for CUDA 13.0, newer than the driver (NVIDIA driver 580.1, CUDA 12.8)",
              "PyTorch for CUDA 12");
  const std::vector<Line> without = line_for("None", 13000);
  ASSERT_THAT(without, SizeIs(1));
  expect_line(without[0], "warning", "built without CUDA", "install a CUDA build");
}

TEST_F(DoctorTest, HiddenGpus) {
  EXPECT_THAT(lines("visible_devices", two_gpus(), "CUDA_VISIBLE_DEVICES=GPU-2222"), IsEmpty());
  for (const char* hides : {"", "2", "GPU-3333", "-1"}) {
    expect_line(line("visible_devices", two_gpus(), std::string("CUDA_VISIBLE_DEVICES=") + hides), "warning",
                "hides every GPU", "nvidia-smi -L");
  }
}

TEST_F(DoctorTest, OtherPreloadedLibraries) {
  expect_line(line("ld_preload", two_gpus(), "LD_PRELOAD="), "ok", "LD_PRELOAD is not set", "");
  const std::string harmless = folder_.write("libharmless.so", "");
  const std::string memray = folder_.write("libmemray.so", "");
  expect_line(line("ld_preload", two_gpus(), "LD_PRELOAD=" + harmless), "ok",
              "libharmless.so: tidemark's library is loaded before it", "");
  expect_line(line("ld_preload", two_gpus(), "LD_PRELOAD='" + harmless + " " + memray + "'"), "warning",
              "loads another memory profiler", "unset LD_PRELOAD");
}

TEST_F(DoctorTest, InjectedProfilers) {
  expect_line(line("injection", two_gpus(), "CUDA_INJECTION64_PATH=/opt/nsight.so"), "warning",
              "CUDA_INJECTION64_PATH=/opt/nsight.so", "unset the variable");
}

}  // namespace
}  // namespace tidemark::testing
