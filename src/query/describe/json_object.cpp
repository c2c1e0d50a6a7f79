#include "query/describe/json_object.h"

namespace tidemark {

std::string print_json(std::vector<Json> objects) {
  Json document;
  if (objects.size() == 1) {
    document = std::move(objects.front());
  } else {
    document["recordings"] = std::move(objects);
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidemark
