// The files of one SQLite database, and no others.
#pragma once

#include <sqlite3.h>

#include <string>

namespace tidemark {

/// SQLite's file access for the database that is opened with it. A file placed beside the database, by any user with
/// write access to that folder, can neither make SQLite delete another file (a journal names a file that SQLite deletes
/// after a crash) nor block this program (a FIFO). Destroy it after the database. One thread at a time.
class DatabaseFiles : sqlite3_vfs {
 public:
  DatabaseFiles();
  ~DatabaseFiles();
  DatabaseFiles(const DatabaseFiles&) = delete;
  DatabaseFiles& operator=(const DatabaseFiles&) = delete;

  /// For sqlite3_open_v2().
  [[nodiscard]] const char* name() const { return zName; }
  /// The refused file and the reason; empty: none.
  [[nodiscard]] const std::string& refused() const { return refused_; }

 private:
  static int open_file(sqlite3_vfs* self, const char* path, sqlite3_file* file, int flags, int* used_flags);
  static int delete_file(sqlite3_vfs* self, const char* path, int sync_folder);

  const std::string name_;
  std::string path_;  // of the database
  std::string refused_;
};

}  // namespace tidemark
