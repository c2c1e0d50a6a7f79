// A training loop in plain C++, on the CPU: gradient descent that fits a line. It is recorded, its steps are measured,
// and the memory of the machine is watched meanwhile.
//
//     training [RECORDING] [REPORT]       (default: training.tide, training.json)
#include <tidemark/monitors.h>
#include <tidemark/performance_monitor.h>
#include <tidemark/profiler.h>
#include <tidemark/recording.h>

#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace {

struct Batch {
  std::vector<double> x;
  std::vector<double> y;
};

Batch next_batch(std::mt19937& random) {
  std::normal_distribution<double> noise(0, 0.1);
  std::uniform_real_distribution<double> place(-1, 1);
  Batch batch;
  for (int n = 0; n < 256; ++n) {
    batch.x.push_back(place(random));
    batch.y.push_back(3 * batch.x.back() + 2 + noise(random));
  }
  return batch;
}

struct Line {
  double slope = 0;
  double offset = 0;
};

// One step of gradient descent; the loss before it.
double step(Line& line, const Batch& batch) {
  double loss = 0;
  Line gradient;
  for (std::size_t n = 0; n < batch.x.size(); ++n) {
    const double error = line.slope * batch.x[n] + line.offset - batch.y[n];
    loss += error * error;
    gradient.slope += 2 * error * batch.x[n];
    gradient.offset += 2 * error;
  }
  const double count = static_cast<double>(batch.x.size());
  line.slope -= 0.1 * gradient.slope / count;
  line.offset -= 0.1 * gradient.offset / count;
  return loss / count;
}

void train(const std::string& recording, const std::string& report) {
  tidemark::OomDetector detector;
  detector.add_warning_callback([](const std::string& device, const tidemark::RiskPrediction& prediction) {
    std::cerr << device << ": " << name_of(prediction.risk_level) << ": " << prediction.recommendation << "\n";
  });
  detector.start_monitoring();

  tidemark::RecordingOptions options;
  options.replace = true;
  tidemark::Profiler profiler(recording, options);
  profiler.start();

  tidemark::PerformanceMonitor monitor;
  monitor.start_monitoring();
  tidemark::Metric loss = monitor.metric("loss");  // looked up once
  std::mt19937 random(1);
  Line line;
  for (int epoch = 0; epoch < 2; ++epoch) {
    tidemark::mark("epoch " + std::to_string(epoch));
    for (int n = 0; n < 100; ++n) {
      const tidemark::Step recorded_step;
      Batch batch;
      {
        const auto waiting = monitor.waiting_for_data();
        batch = next_batch(random);
      }
      {
        const tidemark::Scope scope("forward");
        const auto forward = monitor.phase(tidemark::StepPhase::forward);
        loss.log(step(line, batch));
      }
      monitor.step(batch.x.size());
    }
  }
  monitor.stop_monitoring();
  detector.stop_monitoring();

  for (const tidemark::RecordedFile& file : profiler.stop()) {
    const tidemark::Recording read(file.path);
    std::cout << file.path << ": " << read.program().event_count << " events of " << read.program().command_line
              << "\n";
  }
  std::ofstream(report) << monitor.get_performance_report();
  for (const tidemark::MetricSummary& metric : monitor.metrics()) {
    std::cout << metric.count << " steps, " << metric.name << " " << metric.mean.value_or(0) << " on average; "
              << "y = " << line.slope << " x + " << line.offset << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? argv[1] : "training.tide", argc > 2 ? argv[2] : "training.json");
  } catch (const std::exception& error) {
    std::cerr << "training: " << error.what() << "\n";
    return 1;
  }
}
