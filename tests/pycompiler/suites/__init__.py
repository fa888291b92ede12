"""What the runs of public test suites share: outcomes, comparison, processes, records, pages."""
