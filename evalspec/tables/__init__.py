"""The two tables of a run, responses and questions, as Parquet bytes."""
