"""What the runner costs, and when it pays off: ``python -m benchmarks``.

```
agents ─▶ workloads ─┐
                     ├─▶ measure ─▶ targets, sweep, memory ─▶ report, plot
seed_method ─▶ contenders ─┘
```

Every figure is a ratio between contenders that one process has measured in turn, so that it holds
on any machine; see ``measure``.
"""
