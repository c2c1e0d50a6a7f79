#include "tui/view.h"

namespace tidemark::tui {

const std::array<View, kViews>& views() {
  static const std::array<View, kViews> kList = {devices_view(), processes_view(), charts_view(),
                                                 holders_view(), findings_view(),  host_view()};
  return kList;
}

}  // namespace tidemark::tui
