// The files of one SQLite database, and no others.
#pragma once

#include <sqlite3.h>

#include <string>

namespace tidemark {

/// What SQLite does with files for the database that is opened with it. A file that lies beside the database, from
/// whoever may write to that folder, can neither have another file deleted (a journal names one that SQLite deletes
/// after a crash) nor hold this program up (a FIFO). To be destroyed after the database. One thread at a time.
class DatabaseFiles : sqlite3_vfs {
 public:
  DatabaseFiles();
  ~DatabaseFiles();
  DatabaseFiles(const DatabaseFiles&) = delete;
  DatabaseFiles& operator=(const DatabaseFiles&) = delete;

  /// For sqlite3_open_v2().
  [[nodiscard]] const char* name() const { return zName; }
  /// What was refused, and why; empty: nothing.
  [[nodiscard]] const std::string& refused() const { return refused_; }

 private:
  static int open_file(sqlite3_vfs* self, const char* path, sqlite3_file* file, int flags, int* used_flags);
  static int delete_file(sqlite3_vfs* self, const char* path, int sync_folder);

  const std::string name_;
  std::string path_;  // of the database
  std::string refused_;
};

}  // namespace tidemark
