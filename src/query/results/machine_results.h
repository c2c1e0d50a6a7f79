// Results that are not about recordings: machines, monitors, models. to_object(result) and to_json(result) of
// describe.h write their JSON.
#pragma once

#include <string>

#include "cluster/job_report.h"
#include "collect/machine/inventory.h"
#include "doctor/diagnosis.h"
#include "inprocess/performance/performance_report.h"
#include "model/model_facts.h"
#include "monitor/watch_reports.h"
#include "publish/history/history.h"
#include "query/describe/describe.h"

namespace tidemark {

// clang-format off
template <typename Visitor> void describe(Visitor& v, const Inventory& inventory);
template <typename Visitor> void describe(Visitor& v, const Diagnosis& diagnosis);
template <typename Visitor> void describe(Visitor& v, const ProfileReport& report);
template <typename Visitor> void describe(Visitor& v, const OomReport& report);
template <typename Visitor> void describe(Visitor& v, const LeakReport& report);
template <typename Visitor> void describe(Visitor& v, const FragmentReport& report);
template <typename Visitor> void describe(Visitor& v, const RiskChange& change);
template <typename Visitor> void describe(Visitor& v, const JobReport& report);
template <typename Visitor> void describe(Visitor& v, const CommandReport& report);
template <typename Visitor> void describe(Visitor& v, const History& history);
template <typename Visitor> void describe(Visitor& v, const PerformanceReport& report);
template <typename Visitor> void describe(Visitor& v, const ModelFacts& facts);
// clang-format on

/// On one line.
[[nodiscard]] std::string to_json(const RiskChange& change);

}  // namespace tidemark
