"""Tables in Markdown, in the format of docs/performance.md and bench/results."""


def cell(value):
    return "n/a" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def table(title, head, rows):
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(cell(value) for value in row)} |", flush=True)
