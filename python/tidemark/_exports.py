"""The public names of ``import tidemark``, and their modules: the only list to which to add a public name."""

from __future__ import annotations

from typing import TYPE_CHECKING

#: Public name -> the module that defines it.
EXPORTS: dict[str, str] = {
    "DistributedMemoryMonitor": "tidemark.job_monitor",
    "job_command": "tidemark.job_monitor",
    "job_report": "tidemark.job_monitor",
    "FragmentationAnalyzer": "tidemark.monitors",
    "GPUMemoryProfiler": "tidemark.events",
    "GradientMonitor": "tidemark.model_analysis.gradients",
    "GradientThresholds": "tidemark.model_analysis.verdicts",
    "HolderChain": "tidemark._holders",
    "HolderStep": "tidemark._holders",
    "Holders": "tidemark._holders",
    "Job": "tidemark.reading.run",
    "LargestHolders": "tidemark._holders",
    "MemoryLeakDetector": "tidemark.monitors",
    "MemoryManager": "tidemark.memory_manager",
    "MemoryProfiler": "tidemark.monitors",
    "ModelAnalysis": "tidemark.model_analysis.result",
    "OOMDetector": "tidemark.monitors",
    "OOMPrediction": "tidemark.monitors",
    "OptimizedDataLoader": "tidemark.loading",
    "PerformanceMonitor": "tidemark.performance",
    "PrefetchLoader": "tidemark.loading",
    "Recording": "tidemark.recording",
    "RiskLevel": "tidemark.monitors",
    "RiskWatch": "tidemark._risks",
    "Run": "tidemark.reading.run",
    "StepGuard": "tidemark.step_guard",
    "StepStopped": "tidemark.step_guard",
    "StorageOwner": "tidemark._holders",
    "TensorCheck": "tidemark.model_analysis.values",
    "TidemarkError": "tidemark._errors",
    "act_on_forecast": "tidemark.memory_manager",
    "analyze_model": "tidemark.model_analysis.analysis",
    "auto_batch_size": "tidemark.memory_manager",
    "check_memory_status": "tidemark.debugger.snapshots",
    "check_tensors": "tidemark.model_analysis.values",
    "checkpoint": "tidemark.debugger.checkpoints",
    "checkpoint_and_exit": "tidemark.memory_manager",
    "cleanup_memory": "tidemark.debugger.snapshots",
    "compare": "tidemark.reading.run",
    "compare_checkpoints": "tidemark.debugger.checkpoints",
    "compare_configs": "tidemark.debugger.compare_configs",
    "compare_snapshots": "tidemark.debugger.snapshots",
    "create_memory_debugger": "tidemark.debugger.memory_debugger",
    "debug_lora_training": "tidemark.debugger.training_profiler",
    "generate_report": "tidemark.debugger.snapshots",
    "holders": "tidemark._holders",
    "is_recording": "tidemark._recorder",
    "largest_holders": "tidemark._holders",
    "load_ipython_extension": "tidemark.notebook",
    "mark": "tidemark._recorder",
    "memory_profiled_training": "tidemark.debugger.training_profiler",
    "memory_snapshot": "tidemark.debugger.snapshots",
    "monitor_function": "tidemark.debugger.snapshots",
    "on_risk": "tidemark._risks",
    "pause": "tidemark._recorder",
    "range": "tidemark._recorder",
    "read": "tidemark.reading.run",
    "record": "tidemark.recording",
    "resume": "tidemark._recorder",
    "retry_on_oom": "tidemark.memory_manager",
    "start": "tidemark.recording",
    "step": "tidemark._recorder",
    "stop": "tidemark.recording",
    "training": "tidemark.debugger.training",
    "unload_ipython_extension": "tidemark.notebook",
}

if TYPE_CHECKING:  # `from tidemark.module import name as name`, one line for each entry above
    from tidemark._errors import TidemarkError as TidemarkError
    from tidemark._holders import HolderChain as HolderChain
    from tidemark._holders import Holders as Holders
    from tidemark._holders import HolderStep as HolderStep
    from tidemark._holders import LargestHolders as LargestHolders
    from tidemark._holders import StorageOwner as StorageOwner
    from tidemark._holders import holders as holders
    from tidemark._holders import largest_holders as largest_holders
    from tidemark._recorder import is_recording as is_recording
    from tidemark._recorder import mark as mark
    from tidemark._recorder import pause as pause
    from tidemark._recorder import range as range
    from tidemark._recorder import resume as resume
    from tidemark._recorder import step as step
    from tidemark._risks import RiskWatch as RiskWatch
    from tidemark._risks import on_risk as on_risk
    from tidemark.debugger.checkpoints import checkpoint as checkpoint
    from tidemark.debugger.checkpoints import compare_checkpoints as compare_checkpoints
    from tidemark.debugger.compare_configs import compare_configs as compare_configs
    from tidemark.debugger.memory_debugger import create_memory_debugger as create_memory_debugger
    from tidemark.debugger.snapshots import check_memory_status as check_memory_status
    from tidemark.debugger.snapshots import cleanup_memory as cleanup_memory
    from tidemark.debugger.snapshots import compare_snapshots as compare_snapshots
    from tidemark.debugger.snapshots import generate_report as generate_report
    from tidemark.debugger.snapshots import memory_snapshot as memory_snapshot
    from tidemark.debugger.snapshots import monitor_function as monitor_function
    from tidemark.debugger.training import training as training
    from tidemark.debugger.training_profiler import debug_lora_training as debug_lora_training
    from tidemark.debugger.training_profiler import memory_profiled_training as memory_profiled_training
    from tidemark.events import GPUMemoryProfiler as GPUMemoryProfiler
    from tidemark.job_monitor import DistributedMemoryMonitor as DistributedMemoryMonitor
    from tidemark.job_monitor import job_command as job_command
    from tidemark.job_monitor import job_report as job_report
    from tidemark.loading import OptimizedDataLoader as OptimizedDataLoader
    from tidemark.loading import PrefetchLoader as PrefetchLoader
    from tidemark.memory_manager import MemoryManager as MemoryManager
    from tidemark.memory_manager import act_on_forecast as act_on_forecast
    from tidemark.memory_manager import auto_batch_size as auto_batch_size
    from tidemark.memory_manager import checkpoint_and_exit as checkpoint_and_exit
    from tidemark.memory_manager import retry_on_oom as retry_on_oom
    from tidemark.model_analysis.analysis import analyze_model as analyze_model
    from tidemark.model_analysis.gradients import GradientMonitor as GradientMonitor
    from tidemark.model_analysis.result import ModelAnalysis as ModelAnalysis
    from tidemark.model_analysis.values import TensorCheck as TensorCheck
    from tidemark.model_analysis.values import check_tensors as check_tensors
    from tidemark.model_analysis.verdicts import GradientThresholds as GradientThresholds
    from tidemark.monitors import FragmentationAnalyzer as FragmentationAnalyzer
    from tidemark.monitors import MemoryLeakDetector as MemoryLeakDetector
    from tidemark.monitors import MemoryProfiler as MemoryProfiler
    from tidemark.monitors import OOMDetector as OOMDetector
    from tidemark.monitors import OOMPrediction as OOMPrediction
    from tidemark.monitors import RiskLevel as RiskLevel
    from tidemark.notebook import load_ipython_extension as load_ipython_extension
    from tidemark.notebook import unload_ipython_extension as unload_ipython_extension
    from tidemark.performance import PerformanceMonitor as PerformanceMonitor
    from tidemark.reading.run import Job as Job
    from tidemark.reading.run import Run as Run
    from tidemark.reading.run import compare as compare
    from tidemark.reading.run import read as read
    from tidemark.recording import Recording as Recording
    from tidemark.recording import record as record
    from tidemark.recording import start as start
    from tidemark.recording import stop as stop
    from tidemark.step_guard import StepGuard as StepGuard
    from tidemark.step_guard import StepStopped as StepStopped
