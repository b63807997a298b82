"""Behind scripts/test-datasets: each file becomes one table, with a row for each line."""

import os
import sys
import tempfile

from datasets import load_dataset

with tempfile.TemporaryDirectory() as cache:
    for path in sys.argv[1:]:
        table = load_dataset("json", data_files=path, split="train", cache_dir=cache)
        with open(path, "rb") as file:
            lines = sum(1 for _ in file)
        assert table.num_rows == lines, f"{path}: {lines} lines, {table.num_rows} rows"
        print(f"{os.path.basename(path)}: {lines} rows, columns {', '.join(table.column_names)}")
