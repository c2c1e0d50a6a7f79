#include "query/describe/json_object.h"

namespace tidemark {

Json& JsonObject::add(Json& object, std::string_view key) {
  using Members = std::vector<std::pair<const std::string, Json>>;
  // Without a search for the key: no description has one twice.
  return static_cast<Members&>(object.get_ref<Json::object_t&>()).emplace_back(std::string(key), nullptr).second;
}

Json& JsonObject::append(Json& array) {
  return array.get_ref<Json::array_t&>().emplace_back(nullptr);
}

void JsonObject::set(Json& into, bool value) {
  into = value;
}

void JsonObject::set(Json& into, std::int64_t value) {
  into = value;
}

void JsonObject::set(Json& into, std::uint64_t value) {
  into = value;
}

void JsonObject::set(Json& into, double value) {
  into = value;
}

void JsonObject::set(Json& into, std::string_view value) {
  into = value;
}

void JsonObject::set(Json& into, const Json& value) {
  into = value;
}

void JsonObject::set_object(Json& into) {
  into = Json::object();
}

void JsonObject::set_array(Json& into) {
  into = Json::array();
}

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
