#include "monitor/on_risk.h"

#include <utility>

namespace tidemark {

RiskListener on_risk(RiskLevel least, RiskListener act) {
  return [least, act = std::move(act)](const RiskChange& change) {
    if (change.now.level >= least && change.now.level > change.before) act(change);
  };
}

}  // namespace tidemark
