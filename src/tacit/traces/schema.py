"""The tables of the traces layer in tacit.db, as numbered steps; see base/database.py."""

STEPS = (
    """
    CREATE TABLE sessions (
      id INTEGER PRIMARY KEY,
      host TEXT NOT NULL,
      session TEXT NOT NULL,
      project TEXT NOT NULL,
      source TEXT NOT NULL,
      started REAL,
      ended REAL,
      stored REAL NOT NULL,
      turns INTEGER NOT NULL DEFAULT 0,
      prompts INTEGER NOT NULL DEFAULT 0,
      calls INTEGER NOT NULL DEFAULT 0,
      failures INTEGER NOT NULL DEFAULT 0,
      head BLOB NOT NULL,
      UNIQUE (host, session)
    ) STRICT;
    CREATE INDEX sessions_ended ON sessions (ended);
    CREATE INDEX sessions_project ON sessions (project);

    CREATE TABLE turns (
      id INTEGER PRIMARY KEY,
      session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
      number INTEGER NOT NULL,
      has_prompt INTEGER NOT NULL,
      skills TEXT NOT NULL,
      redacted TEXT NOT NULL,
      body BLOB NOT NULL,
      UNIQUE (session_id, number)
    ) STRICT;

    CREATE TABLE calls (
      turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
      place INTEGER NOT NULL,
      name TEXT NOT NULL,
      kind TEXT NOT NULL,
      failed INTEGER NOT NULL,
      error TEXT NOT NULL,
      duration REAL,
      PRIMARY KEY (turn_id, place)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX calls_by_kind ON calls (kind, failed);

    CREATE VIRTUAL TABLE turns_text USING fts5 (
      prompt, said, done, content = '', tokenize = 'unicode61 remove_diacritics 2'
    );

    CREATE TABLE sources (
      host TEXT NOT NULL,
      path TEXT NOT NULL,
      key TEXT NOT NULL,
      session_id INTEGER REFERENCES sessions (id) ON DELETE SET NULL,
      bookmark BLOB,
      PRIMARY KEY (host, path, key)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE forgotten (
      host TEXT NOT NULL,
      session TEXT NOT NULL,
      ended REAL,
      by_user INTEGER NOT NULL,
      PRIMARY KEY (host, session)
    ) STRICT, WITHOUT ROWID;
    """,
)
