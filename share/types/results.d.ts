// What `tidemark COMMAND --format json` prints. Made by scripts/refresh_results.py from src/query/results: edit that.

/** The recorded process; of a snapshot little is known. */
export interface Process {
  pid: number | null;
  parent_pid: number | null;
  /** of the launcher, as the next two; null without one */
  rank: number | null;
  local_rank: number | null;
  world_size: number | null;
  hostname: string | null;
  command_line: string | null;
  python_version: string | null;
  torch_version: string | null;
  /** "python", "native", "both" or "none" */
  stack_mode: string | null;
  recorder_version: string | null;
  /** Unix time */
  start_wall_ns: number | null;
}

/** Something that is missing in the recording, or not exact. */
export interface DataQualityIssue {
  id: string;
  severity: "info" | "warning" | "error";
  /** in `unit` */
  count: number | null;
  unit: "allocations" | "blocks" | "bytes" | "calls" | "definitions" | "entries" | "events" | "fields" | "frames" | "frees" | "losses" | "occurrences" | "pauses" | "processes" | "records" | "samples" | "segments" | "stacks" | "steps" | "threads" | null;
  /** what the text says beside the count */
  params: Record<string, number | string | Record<string, number>>;
  /** a sentence */
  text: string;
}

/** Whether anything is missing in the recording. */
export interface DataQuality {
  /** no event is missing */
  complete: boolean;
  /** worst first */
  issues: DataQualityIssue[];
}

/** Which recording a result is of. */
export interface OfRecording {
  /** path as given */
  file: string;
  source: "recording" | "pytorch_snapshot";
  /** PYTORCH_CUDA_ALLOC_CONF; "" for the defaults; null: unknown */
  allocator_settings: string | null;
  process: Process;
  /** events in the recording, or entries of the snapshot's trace */
  event_count: number;
  /** from the start to the last event */
  duration_ns: number;
  data_quality: DataQuality;
  /** name of the GPU that `tidemark plan` simulated; absent: the program ran without it */
  simulated_gpu?: string;
  /** which blocks were chosen, in words; absent: all */
  filter?: string;
}

/** In a list by owner, the key that was asked for; its value is null where it is not known. The other keys are absent. */
export interface Owner {
  category?: string | null;
  component?: string | null;
  layer?: string | null;
  module?: string | null;
  phase?: string | null;
  step?: string | null;
}

/** A call in a stack. */
export interface Frame {
  /** name; native without a symbol: library and offset */
  function: string;
  /** source file of Python, library of native code */
  file: string | null;
  /** of Python */
  line: number | null;
  kind: "python" | "native";
  /** of torch.compile: which graph */
  compiled?: "forward" | "backward" | "inference" | "unknown";
  /** of a generated line: the nodes of the graph that it stands for */
  source_nodes?: string;
}

/** A call stack; `frames` begin with the outermost. */
export interface Stack {
  /** the call site on one line */
  label: string;
  frames: Frame[];
}

/** What holds memory: a stack, or the owner that was asked for. */
export interface Holder extends Owner {
  /** null: not recorded */
  stack?: Stack | null;
}

/** A place in the program, or the owner that was asked for, and what it held at the peak. */
export interface CallSite extends Holder {
  bytes: number;
  block_count: number;
  stack_count: number;
  /** of what was allocated */
  share: number;
}

/** Memory of one category, and the confidence of that category. */
export interface CategoryBytes {
  category: "parameter" | "buffer" | "gradient" | "per_sample_gradient" | "optimizer_state" | "activation" | "input" | "temporary" | "workspace" | "copy" | "unknown";
  bytes: number;
  /** known from the pointers of the model's tensors */
  exact_bytes: number;
  /** in these tensors themselves */
  tensor_bytes: number;
  block_count: number;
  /** of what was allocated */
  share: number;
  /** of all these blocks */
  confidence: "exact" | "estimated" | "unknown";
}

/** A module, and what it held at the peak. */
export interface ModuleHeldAtPeak {
  module: string;
  held_at_peak_bytes: number;
}

/** A change of the program that would lower the peak. */
export interface Advice {
  kind: "checkpoint_activations" | "gradients_in_forward" | "frozen_gradients" | "frozen_optimizer_state" | "large_optimizer_state" | "attention_matrices" | "logits" | "logits_upcast" | "gradient_buckets" | "gathered_parameters" | "checkpoint_copies" | "loaded_checkpoint" | "model_copies" | "retained_graph" | "inference_with_autograd" | "unused_gradients" | "forwards_before_backward" | "checkpoint_each_layer" | "optimizer_temporaries" | "kept_over_steps" | "failed_call" | "repeated_concatenation" | "collected_results" | "held_results";
  /** by which the peak would be lower */
  avoidable_peak_bytes: number;
  /** the least certain of the blocks concerned */
  confidence: "exact" | "estimated" | "unknown";
  /** by the blocks concerned */
  held_at_peak_bytes: number;
  held_at_peak_block_count: number;
  /** that are concerned, most bytes first */
  modules: ModuleHeldAtPeak[];
  /** of most of these bytes */
  stack: Stack | null;
}

/** Peaks and totals of one device. */
export interface SummaryDevice {
  device: string;
  peak_allocated_bytes: number;
  /** the first time; null: nothing was allocated */
  peak_allocated_at_ns: number | null;
  /** null on the CPU */
  peak_reserved_bytes: number | null;
  peak_reserved_at_ns: number | null;
  /** null in recordings */
  peak_active_bytes: number | null;
  peak_active_at_ns: number | null;
  end_allocated_bytes: number;
  /** of these, in recorded blocks */
  end_recorded_bytes: number;
  end_block_count: number;
  end_reserved_bytes: number | null;
  end_active_bytes: number | null;
  /** allocated before the first event; null without counters of the allocator */
  baseline_bytes: number | null;
  allocation_count: number;
  free_count: number;
  /** frees without a recorded allocation; included in free_count */
  unmatched_free_count: number;
  out_of_memory_count: number;
  /** sum of all allocations */
  total_allocated_bytes: number;
  /** most bytes first; shares are of peak_allocated_bytes */
  call_sites_at_peak: CallSite[];
  other_call_site_count: number;
  other_call_sites_bytes: number;
  /** in no recorded block */
  unrecorded_at_peak_bytes: number;
  /** where they are known */
  categories_at_peak?: CategoryBytes[];
  /** most saving first */
  advice?: Advice[];
}

/** A request that failed. */
export interface OutOfMemory {
  device: string;
  time_ns: number;
  requested_bytes: number;
  allocated_bytes: number | null;
  reserved_bytes: number | null;
  stack: Stack | null;
}

/** Why the latest request failed, in short. */
export interface OutOfMemoryVerdict {
  device: string;
  time_ns: number;
  requested_bytes: number;
  device_free_bytes: number | null;
  /** as in `explain`; null: not known */
  cause: "leak" | "other_process" | "limit" | "fragmentation" | "demand" | null;
  text: string;
}

/** One part of the memory that is used on a device. */
export interface LedgerLine {
  part: "pytorch" | "library" | "context" | "process";
  bytes: number | null;
  /** of a library or process */
  name?: string | null;
  /** of a process */
  pid?: number;
  /** of a process */
  kind?: "recorded" | "job" | "other" | "ended" | "other_namespace";
}

/** Why a ledger may not add up. */
export interface LedgerCaveat {
  kind: "no_samples" | "device_not_sampled" | "no_sample_yet" | "used_unknown" | "no_events" | "reserved_unknown" | "allocator_unknown" | "libraries_in_context" | "driver_calls_missing" | "processes_unknown" | "process_not_listed" | "process_bytes_unknown" | "process_matched" | "process_below_known" | "other_bytes_unknown" | "during_driver_call" | "transient_peak";
  text: string;
}

/** A device's memory at one time; the lines and what is unexplained add up to what is used. */
export interface LedgerAt {
  /** of the sample; null: nothing was recorded */
  time_ns: number | null;
  /** as the driver says; null without a sample */
  used_bytes: number | null;
  lines: LedgerLine[];
  /** may be negative */
  unexplained_bytes: number | null;
  /** by PyTorch */
  allocated_bytes: number | null;
  /** by PyTorch: reserved, but not allocated */
  cached_bytes: number | null;
  /** not in the sum; null where no driver calls were recorded, as the next */
  managed_bytes: number | null;
  /** not in the sum */
  pinned_host_bytes: number | null;
  /** when the list of processes was read */
  processes_sampled_at_ns: number | null;
  /** at the peak: more that was used during a long call of the driver */
  transient_peak_bytes: number | null;
  /** what is not known, and why */
  caveats: LedgerCaveat[];
}

/** All memory of a GPU, when most was used and at the end. */
export interface LedgerExtremes {
  device: string;
  model: string | null;
  total_bytes: number | null;
  peak: LedgerAt;
  end: LedgerAt | null;
}

/** A value that was sampled: its highest sample, and the last. */
export interface SampledBytes {
  peak_bytes: number;
  peak_at_ns: number;
  /** null: last read more than 10 s before the end */
  end_bytes: number | null;
  /** when the last one was read */
  last_at_ns: number;
}

/** Memory of the host: of the process, of the job, and of the control group. */
export interface HostMemory {
  /** of the recorded process, as pss and those from anon to pinned */
  rss: SampledBytes | null;
  pss: SampledBytes | null;
  /** most at one time */
  job_process_count: number | null;
  /** of all processes below `tidemark run`, as all of the job */
  job_rss: SampledBytes | null;
  job_pss: SampledBytes | null;
  /** of the control group with the lowest limit */
  cgroup_usage: SampledBytes | null;
  cgroup_limit_bytes: number | null;
  /** while the program ran */
  cgroup_oom_kills: number;
  anon: SampledBytes | null;
  file: SampledBytes | null;
  shmem: SampledBytes | null;
  swap: SampledBytes | null;
  locked: SampledBytes | null;
  pinned: SampledBytes | null;
  job_anon: SampledBytes | null;
  job_file: SampledBytes | null;
  job_shmem: SampledBytes | null;
  job_swap: SampledBytes | null;
  /** on the machine, without swapping */
  lowest_available_bytes: number | null;
  lowest_available_at_ns: number | null;
}

/** One part of the memory that is used on the host. */
export interface HostLine {
  part: "process" | "job_processes" | "other_processes" | "shared_memory" | "page_cache" | "kernel" | "sockets";
  bytes: number | null;
  /** of a process */
  pid: number | null;
  /** of several that are one line */
  process_count: number | null;
  text: string;
}

/** How often a control group met its bounds. */
export interface CgroupEvents {
  low: number | null;
  high: number | null;
  max: number | null;
  oom: number | null;
  under_oom: boolean | null;
}

/** A process of the job. */
export interface HostProcess {
  pid: number;
  parent_pid: number | null;
  role: "other" | "main" | "rank" | "data_worker" | "resource_tracker" | "fork_server" | "compile_worker" | "launcher" | "child";
  recorded: boolean;
  /** of a rank or DataLoader worker */
  number: number | null;
  /** of these */
  count: number | null;
  name: string | null;
  rss_bytes: number | null;
  anon_bytes: number | null;
  file_bytes: number | null;
  shmem_bytes: number | null;
  swap_bytes: number | null;
  locked_bytes: number | null;
  pinned_bytes: number | null;
  /** null where it was not read with this sample */
  pss_bytes: number | null;
  private_bytes: number | null;
}

/** Why a ledger of the host may not add up. */
export interface HostCaveat {
  kind: "shared_pages" | "estimated_pages" | "anon_unknown" | "parts_unknown";
  text: string;
}

/** The host's memory at one time; the lines and what is unexplained add up to what is used. */
export interface HostLedgerAt {
  time_ns: number;
  scope: "machine" | "cgroup";
  used_bytes: number | null;
  /** of the machine: all its memory */
  limit_bytes: number | null;
  /** without swapping */
  machine_available_bytes: number | null;
  lines: HostLine[];
  /** may be negative */
  unexplained_bytes: number | null;
  /** not in the sum, or in several lines, as the next three */
  swap_bytes: number | null;
  locked_bytes: number | null;
  pinned_bytes: number | null;
  cuda_pinned_bytes: number | null;
  /** since the group exists */
  cgroup_events: CgroupEvents;
  /** of the job, at most 32, most resident bytes first */
  processes: HostProcess[];
  other_process_count: number;
  other_processes_rss_bytes: number | null;
  caveats: HostCaveat[];
}

/** All memory of the host, when most was used and at the end. */
export interface HostExtremes {
  peak: HostLedgerAt;
  end: HostLedgerAt | null;
}

/** A process of the job that the kernel's OOM killer ended. */
export interface KilledProcess {
  time_ns: number;
  process: HostProcess;
  /** how it is known */
  evidence: "kernel_log" | "exit_signal" | "vanished";
  /** whose memory was short */
  scope: "unknown" | "cgroup" | "machine";
  /** the most of the samples shortly before */
  cgroup_usage_bytes: number | null;
  cgroup_limit_bytes: number | null;
  /** a sentence */
  text: string;
  /** what it held, how that is known, and who held most */
  details: string[];
  /** the host in the last sample before */
  before: HostLedgerAt | null;
}

/** Peak memory of each device, and the call sites that held it. */
export interface Summary extends OfRecording {
  devices: SummaryDevice[];
  /** the first ten requests that failed */
  out_of_memory: OutOfMemory[];
  /** of the latest; null: none failed */
  out_of_memory_verdict: OutOfMemoryVerdict | null;
  /** of devices with samples */
  ledgers: LedgerExtremes[];
  /** null: not sampled */
  host: HostMemory | null;
  /** page-locked memory of the host from CUDA, by its calls: requests as PyTorch rounded them; null: none was recorded */
  pinned: SampledBytes | null;
  /** null: not sampled */
  host_ledger: HostExtremes | null;
  /** by the kernel, for lack of host memory */
  killed: KilledProcess[];
  /** growth by all leaks; null: none was found, or the recording has no owners */
  leak_bytes_per_step: number | null;
}

/** A GPU that a process allocated on beside the one that it used most. */
export interface OtherGpu {
  device: string;
  peak_allocated_bytes: number;
  /** the call site that held most at that peak */
  stack: Stack | null;
  /** the rank whose device it is; null: no rank's */
  rank: number | null;
}

/** A process on one of its devices. */
export interface RankRow {
  file: string;
  rank: number | null;
  pid: number | null;
  data_loader_worker: boolean;
  /** the GPU with the highest peak, else the CPU; null: nothing was allocated */
  device: string | null;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number | null;
  /** as the driver says, at its peak; null without samples */
  device_used_bytes: number | null;
  other_gpus: OtherGpu[];
  /** on any device */
  out_of_memory: boolean;
  /** of the peak allocated, as a share of the group's median; null in a group of one */
  difference_to_median: number | null;
  outlier: boolean;
}

/** Processes that are compared with each other. */
export interface RankGroup {
  device_type: string;
  /** DataLoader workers, and what other processes of the job started */
  children: boolean;
  process_count: number;
  /** of the peaks allocated */
  median_bytes: number;
  /** an outlier differs from the median by more */
  outlier_limit_bytes: number;
}

/** All processes of a job in one table. */
export interface Ranks {
  /** by rank, those without one last */
  rows: RankRow[];
  /** in the order of the rows */
  groups: RankGroup[];
}

/** The processes of a job side by side, and each one's summary. */
export interface JobSummary {
  /** null of a single recording */
  ranks: Ranks | null;
  recordings: Summary[];
}

/** The blocks of an owner that have category, phase and certainty in common. */
export interface BreakdownPart {
  category: "parameter" | "buffer" | "gradient" | "per_sample_gradient" | "optimizer_state" | "activation" | "input" | "temporary" | "workspace" | "copy" | "unknown";
  phase: "data" | "forward" | "backward" | "recomputation" | "optimizer" | "other";
  confidence: "exact" | "estimated" | "unknown";
  bytes: number;
  block_count: number;
}

/** An owner of memory. */
export interface BreakdownRow extends Owner {
  bytes: number;
  block_count: number;
  /** of allocated_bytes */
  share: number;
  /** that add up to the row */
  parts: BreakdownPart[];
}

/** Rows beyond the listed ones. */
export interface OtherRows {
  count: number;
  bytes: number;
  block_count: number;
}

/** What a device held, by category and by the owners that were asked for; the others are absent. */
export interface BreakdownDevice {
  device: string;
  /** null: nothing was allocated */
  at_ns: number | null;
  allocated_bytes: number;
  /** of these, in no recorded block */
  unrecorded_bytes: number;
  /** most bytes first; unknown last */
  categories: CategoryBytes[];
  /** most bytes first */
  components?: BreakdownRow[];
  other_components?: OtherRows;
  /** most bytes first */
  layers?: BreakdownRow[];
  other_layers?: OtherRows;
  /** most bytes first */
  modules?: BreakdownRow[];
  other_modules?: OtherRows;
  /** most bytes first */
  phases?: BreakdownRow[];
  other_phases?: OtherRows;
  /** most bytes first */
  steps?: BreakdownRow[];
  other_steps?: OtherRows;
}

/** Whose memory it is: parameters, gradients, activations, ... */
export interface Breakdown extends OfRecording {
  devices: BreakdownDevice[];
}

/** A group of blocks; what it is about is in the field that belongs to `by`. */
export interface TableRow extends Holder {
  bytes: number;
  block_count: number;
  /** of allocated_bytes */
  share: number;
  /** stacks that differ in the called modules alone, such as layers; the one with most bytes is shown */
  stack_count?: number;
  /** by size */
  block_bytes?: number;
  /** by device */
  device?: string;
  /** by device */
  at_ns?: number | null;
  /** by thread; null: not known */
  tid?: number | null;
  /** by thread */
  thread_name?: string | null;
  /** by stream: its handle; 0: the default stream */
  stream?: number;
  /** by pool: its id; [0, 0] is the default pool, others belong to CUDA graphs and torch.cuda.MemPool */
  pool?: number[];
  /** by pool: the stack with most of these bytes */
  most_by?: Stack | null;
  /** by annotation: text on the block, else the innermost range; null: none */
  annotation?: string | null;
}

/** The groups on one device; by device, on all. */
export interface TableSection {
  /** null by device */
  device: string | null;
  at_ns: number | null;
  allocated_bytes: number;
  /** of these, in no recorded block */
  unrecorded_bytes: number;
  /** most bytes first; by device, in the order of devices */
  rows: TableRow[];
  other_row_count: number;
  other_bytes: number;
  other_block_count: number;
}

/** Live allocations at a point in time, in groups. */
export interface Table extends OfRecording {
  by: "stack" | "size" | "device" | "thread" | "stream" | "pool" | "annotation" | "category" | "component" | "layer" | "module" | "phase" | "step";
  sections: TableSection[];
}

/** Callees that are left out because they hold little, or for their depth. */
export interface HiddenNodes {
  count: number;
  bytes: number;
  block_count: number;
}

/** A call, and what it and its callees hold. */
export interface TreeNode extends Frame {
  /** with callees */
  bytes: number;
  block_count: number;
  /** of allocations made in this frame itself */
  own_bytes: number;
  own_block_count: number;
  /** of what the section has allocated, or of its blocks */
  share: number;
  /** callees that are not listed */
  hidden: HiddenNodes;
  /** largest first */
  children: TreeNode[];
}

/** The call tree of one device. */
export interface TreeSection {
  device: string;
  at_ns: number | null;
  allocated_bytes: number;
  /** of these, in no recorded block */
  unrecorded_bytes: number;
  /** in recorded blocks without a stack */
  no_stack_bytes: number;
  no_stack_block_count: number;
  /** live recorded blocks */
  block_count: number;
  /** roots that are not listed */
  hidden: HiddenNodes;
  /** outermost frames, largest first */
  roots: TreeNode[];
}

/** Live allocations at a point in time, as a call tree. */
export interface Tree extends OfRecording {
  by: "bytes" | "count";
  sections: TreeSection[];
}

/** A device's memory at one time. */
export interface TimelinePoint {
  time_ns: number;
  allocated_bytes: number;
  reserved_bytes: number | null;
  active_bytes: number | null;
  /** allocated by libraries from the driver; null where it was not recorded */
  driver_bytes: number | null;
}

/** What a stack or owner held at each of the points. */
export interface TimelineLayer extends Holder {
  /** a number for each point */
  held_bytes: number[];
}

/** Memory of one device over time; layers by what was asked for, the others are absent. */
export interface TimelineDevice {
  device: string;
  peak_allocated_bytes: number;
  peak_allocated_at_ns: number | null;
  peak_reserved_bytes: number | null;
  peak_active_bytes: number | null;
  peak_driver_bytes: number | null;
  peak_driver_at_ns: number | null;
  /** total memory of the GPU; null: unknown */
  capacity_bytes: number | null;
  /** in order of time, with every peak; the last one is at the end */
  points: TimelinePoint[];
  /** those that held most at the peak, most first; categories and phases: all, in their order */
  call_sites?: TimelineLayer[];
  /** by the others, at each point */
  other_held_bytes?: number[];
  /** in no recorded block, at each point */
  unrecorded_held_bytes?: number[];
  /** those that held most at the peak, most first; categories and phases: all, in their order */
  categories?: TimelineLayer[];
  /** by the others, at each point */
  other_owners_held_bytes?: number[];
  /** those that held most at the peak, most first; categories and phases: all, in their order */
  components?: TimelineLayer[];
  /** those that held most at the peak, most first; categories and phases: all, in their order */
  layers?: TimelineLayer[];
  /** those that held most at the peak, most first; categories and phases: all, in their order */
  modules?: TimelineLayer[];
  /** those that held most at the peak, most first; categories and phases: all, in their order */
  phases?: TimelineLayer[];
  /** those that held most at the peak, most first; categories and phases: all, in their order */
  steps?: TimelineLayer[];
}

/** A request that failed. */
export interface TimelineOutOfMemory {
  device: string;
  time_ns: number;
  requested_bytes: number;
}

/** The beginning of a training step. */
export interface TimelineStep {
  /** as `leaks` counts them, from 0; of more than --points every second, fifth, tenth, ... */
  step: number;
  begin_ns: number;
}

/** A stretch of one phase of the training steps. */
export interface TimelinePhase {
  phase: "data" | "forward" | "backward" | "recomputation" | "optimizer";
  begin_ns: number;
  end_ns: number;
}

/** A time in which the program had switched recording off. */
export interface TimelinePause {
  begin_ns: number;
  end_ns: number;
}

/** A sample. */
export interface TimedBytes {
  time_ns: number;
  bytes: number;
}

/** A sampled value over time. */
export interface SampledOverTime extends SampledBytes {
  points: TimedBytes[];
}

/** What the resident memory of the process consists of, in a sample. */
export interface ResidentPoint {
  time_ns: number;
  anon_bytes: number;
  file_bytes: number;
  shmem_bytes: number;
}

/** Memory of the process on the host. */
export interface HostOverTime {
  rss: SampledOverTime | null;
  pss: SampledOverTime | null;
  /** what RSS holds; empty: not known */
  resident: ResidentPoint[];
}

/** Allocated and reserved memory over time. */
export interface Timeline extends OfRecording {
  devices: TimelineDevice[];
  out_of_memory: TimelineOutOfMemory[];
  /** of training; empty: not known */
  steps: TimelineStep[];
  /** without stretches in no phase; null: more than --points */
  phases: TimelinePhase[] | null;
  pauses: TimelinePause[];
  /** null: not sampled */
  host: HostOverTime | null;
}

/** Short-lived allocations of one stack or owner. */
export interface TemporaryRow extends Holder {
  /** the sum of their sizes */
  bytes: number;
  /** of total_allocated_bytes */
  share: number | null;
  allocation_count: number;
  largest_bytes: number;
}

/** Short-lived allocations on one device, and its peak without them. */
export interface TemporaryDevice {
  device: string;
  allocation_count: number;
  /** sum of all allocations */
  total_allocated_bytes: number;
  temporary_count: number;
  /** the sum of their sizes */
  temporary_bytes: number;
  /** of total_allocated_bytes */
  temporary_share: number | null;
  peak_allocated_bytes: number;
  peak_allocated_at_ns: number | null;
  /** had these blocks never been allocated */
  reduced_peak_bytes: number;
  /** null: nothing else was allocated */
  reduced_peak_at_ns: number | null;
  /** at most what avoiding them saves */
  avoidable_peak_bytes: number;
  /** most bytes first */
  rows: TemporaryRow[];
  other_row_count: number;
  other_allocation_count: number;
  other_bytes: number;
}

/** Short-lived allocations by stack, and the peak without them. */
export interface Temporary extends OfRecording {
  /** allocations on the device until the free, at most */
  within: number;
  by: "stack" | "category" | "component" | "layer" | "module" | "phase" | "step";
  devices: TemporaryDevice[];
}

/** How training steps were told, and how many there are. */
export interface StepsFound {
  source: "none" | "given" | "annotation" | "optimizer" | "stack" | "sizes";
  count: number;
}

/** What blocks of one kind of lifetime held at the peak. */
export interface LifetimeAtPeak {
  lifetime: "never_freed" | "temporary" | "across_steps" | "within_step" | "freed";
  bytes: number;
  block_count: number;
}

/** A stack whose blocks have the pattern. */
export interface PatternRow {
  /** and would not be */
  held_at_peak_bytes: number;
  held_at_peak_block_count: number;
  /** in the whole recording, as the next */
  block_count: number;
  total_bytes: number;
  stack: Stack | null;
}

/** Blocks that were kept longer than they were needed, and the peak without that. */
export interface Pattern {
  /** in the whole recording */
  block_count: number;
  held_at_peak_bytes: number;
  /** had each of these blocks been freed earlier */
  reduced_peak_bytes: number;
  reduced_peak_at_ns: number | null;
  /** at most what that saves */
  avoidable_peak_bytes: number;
  /** most bytes at the peak first */
  rows: PatternRow[];
  other_row_count: number;
  other_held_at_peak_bytes: number;
}

/** The patterns of one device. */
export interface PatternsDevice {
  device: string;
  peak_allocated_bytes: number;
  peak_allocated_at_ns: number | null;
  /** in no recorded block */
  unrecorded_at_peak_bytes: number;
  /** those that held memory */
  lifetimes_at_peak: LifetimeAtPeak[];
  /** most saving first */
  advice: Advice[];
  /** alive when the next block of the stack is allocated, a step later; null without steps */
  kept_into_next_step: Pattern | null;
  /** freed right after another allocation: perhaps the input of an operation that could be in place */
  freed_after_allocation: Pattern;
}

/** Avoidable peak memory, by lifetime of the allocations. */
export interface Patterns extends OfRecording {
  /** as in `leaks` */
  steps: StepsFound;
  devices: PatternsDevice[];
}

/** How fragmented a device's memory is at one time. */
export interface FragmentationMeasures {
  time_ns: number;
  allocated_bytes: number;
  reserved_bytes: number | null;
  active_bytes: number | null;
  /** 1 - allocated / reserved */
  unused_share: number | null;
  /** reserved and not active */
  free_bytes: number | null;
  free_block_count: number | null;
  /** the largest request that needs no memory from the driver */
  largest_free_block_bytes: number | null;
  /** 1 - largest free block / free */
  external_fragmentation: number | null;
  /** free, in segments that are free as a whole */
  releasable_bytes: number | null;
  /** free, in other segments that cannot grow */
  inactive_split_bytes: number | null;
  /** allocated beyond what was requested */
  rounding_bytes: number | null;
}

/** Whether a share rises or falls since the warm-up, with its 95% interval. */
export interface ShareTrend {
  change: number;
  low: number;
  high: number;
  point_count: number;
  begin_ns: number;
  end_ns: number;
  verdict: "rises" | "falls" | "unclear";
}

/** Whether unused memory rises or falls since the warm-up, with its 95% interval. */
export interface UnusedTrend {
  change_bytes: number;
  low_bytes: number;
  high_bytes: number;
  /** in MiB */
  mb_per_minute: number;
  begin_ns: number;
  end_ns: number;
  verdict: "rises" | "falls" | "unclear";
}

/** When unused memory takes what the device has left; `null`: it does not, or is not known. */
export interface UnusedForecast {
  /** at the end; null: not sampled */
  device_free_bytes: number | null;
  /** from the end */
  predicted_oom_time_seconds: number | null;
  earliest_seconds: number | null;
  /** null: perhaps never */
  latest_seconds: number | null;
  /** a sentence */
  text: string;
}

/** How reserved memory goes on that is in no tensor even when most is allocated. */
export interface UnusedMemory {
  /** as in the table above */
  pattern: "unknown" | "stable" | "growing" | "steps" | "sawtooth" | "held_peak" | "irregular";
  pattern_text: string;
  /** a sentence */
  verdict: string;
  /** null, as the next, for an unknown pattern */
  is_fragmented: boolean | null;
  /** allocations and frees in the time looked at */
  change_count: number;
  /** since when the pattern holds */
  since_ns: number | null;
  /** at the end */
  reserved_bytes: number | null;
  idle_since_ns: number | null;
  /** of reserved_bytes, more than was allocated at any one time since then */
  idle_bytes: number | null;
  /** of reserved_bytes */
  idle_share: number | null;
  /** of a sawtooth */
  period_seconds: number | null;
  /** held_peak: what was reserved for */
  peak_allocated_bytes: number | null;
  peak_at_ns: number | null;
  /** held_peak: at most, since then */
  later_allocated_bytes: number | null;
  trend: UnusedTrend | null;
  forecast: UnusedForecast;
}

/** What may be done about it, with the measured reason and a command that checks it. */
export interface FragmentationAdvice {
  kind: "empty_cache" | "expandable_segments" | "search" | "settings";
  change: string;
  /** what was measured */
  reason: string;
  avoidable_bytes: number;
  /** as in PYTORCH_CUDA_ALLOC_CONF */
  settings: string | null;
  /** a command */
  check: string;
}

/** A stretch of a segment. */
export interface SegmentBlock {
  address: number;
  bytes: number;
  state: "free" | "allocated" | "pending_free";
}

/** Memory that the allocator reserved from the driver in one piece. */
export interface Segment {
  address: number;
  bytes: number;
  free_bytes: number;
  expandable: boolean;
  /** in order of address */
  blocks: SegmentBlock[];
}

/** What keeps free memory reserved: blocks in the same segments. */
export interface Pinning extends Holder {
  /** in segments that only these blocks hold */
  pinned_free_bytes: number;
  /** with free memory in them */
  segment_count: number;
  /** in these segments, as the next */
  block_count: number;
  bytes: number;
}

/** Blocks of `min_bytes` and more, below the next class. */
export interface SizeClass {
  min_bytes: number;
  /** in the whole recording */
  allocation_count: number;
  live_block_count: number;
  live_bytes: number;
  free_block_count: number;
  free_bytes: number;
}

/** Fragmentation of one device. */
export interface FragmentationDevice {
  device: string;
  /** 1 - peak active / peak reserved */
  peak_unused_share: number | null;
  /** null: there is no such peak */
  at_peak_allocated: FragmentationMeasures | null;
  at_peak_reserved: FragmentationMeasures | null;
  at_end: FragmentationMeasures;
  /** equally far apart, the last one at the end */
  over_time: FragmentationMeasures[];
  /** null: too few known values */
  unused_share_trend: ShareTrend | null;
  external_fragmentation_trend: ShareTrend | null;
  unused_memory: UnusedMemory;
  /** empty: nothing is wrong, or too little is known */
  advice: FragmentationAdvice[];
  /** --at */
  at_moment: FragmentationMeasures | null;
  /** at the moment; those with both blocks and free memory, most of it first */
  segments: Segment[];
  other_segment_count: number;
  other_segments_free_bytes: number;
  empty_segment_count: number;
  /** at the moment, most pinned free bytes first */
  pinning_stacks: Pinning[];
  other_pinning_stack_count: number;
  /** all categories, likewise */
  pinning_categories: Pinning[];
  /** at the moment; those with anything in them */
  size_classes: SizeClass[];
}

/** Reserved memory that is not allocated, and the blocks that keep it reserved. */
export interface Fragmentation extends OfRecording {
  devices: FragmentationDevice[];
  /** what other settings of the allocator would do, in words */
  simulation: string | null;
}

/** A mistake that a leak matches, its confidence, and what to do about it. */
export interface UsualMistake {
  name: "losses_with_graph" | "metrics_not_detached" | "tensors_with_graph" | "capturing_hook" | "repeated_hook" | "unbounded_cache" | "growing_container";
  confidence: "exact" | "estimated" | "unknown";
  cause: string;
  /** what to do */
  fix: string;
}

/** An owner's growth. */
export interface OwnerGrowth extends Owner {
  bytes_per_step: number;
  /** at the last step's start, as the next */
  held_bytes: number;
  held_block_count: number;
}

/** Growth of the owners beyond the listed ones. */
export interface OtherGrowth {
  /** owners */
  count: number;
  bytes_per_step: number;
  /** at the last step's start, as the next */
  held_bytes: number;
  held_block_count: number;
}

/** Growth by the owners that were asked for; the others are absent. */
export interface GrowthByOwners {
  /** fastest first; they and the others add up to all */
  categories?: OwnerGrowth[];
  other_categories?: OtherGrowth;
  /** fastest first; they and the others add up to all */
  components?: OwnerGrowth[];
  other_components?: OtherGrowth;
  /** fastest first; they and the others add up to all */
  layers?: OwnerGrowth[];
  other_layers?: OtherGrowth;
  /** fastest first; they and the others add up to all */
  modules?: OwnerGrowth[];
  other_modules?: OtherGrowth;
  /** fastest first; they and the others add up to all */
  phases?: OwnerGrowth[];
  other_phases?: OtherGrowth;
  /** fastest first; they and the others add up to all */
  steps?: OwnerGrowth[];
  other_steps?: OtherGrowth;
}

/** Leaks with one cause: a retained graph, or a call site. */
export interface LeakGroup extends GrowthByOwners {
  kind: "call_site" | "forward_pass" | "autograd_graph";
  /** of the leaks having one cause */
  confidence: "exact" | "estimated" | "unknown";
  device: string;
  /** growth, with its 95% interval */
  bytes_per_step: number;
  bytes_per_step_low: number;
  bytes_per_step_high: number;
  /** null where each step replaces its block */
  blocks_per_step: number | null;
  /** analyzed steps that left memory behind */
  growing_step_count: number;
  analyzed_step_count: number;
  /** steps from one growth to the next; null where each step grows, or at no fixed interval */
  every_steps: number | null;
  /** with growth; steps count from 0 */
  first_step: number;
  first_step_ns: number;
  /** with growth */
  last_step: number;
  last_step_ns: number;
  /** at the last step's start, in blocks allocated after the warm-up */
  held_bytes: number;
  held_block_count: number;
  /** how many leaks it consists of */
  leak_count: number;
  /** whether it is a call site that another group's forward passes may retain as their input */
  perhaps_input: boolean;
  /** the usual mistake that it matches; null: none */
  mistake: UsualMistake | null;
  /** stack of the tensor that is made last, likely the one that retains the others; null for a call site */
  retained_by: Stack | null;
  /** innermost frame of the project common to the stacks of its activations */
  caller: Frame | null;
}

/** Growth of one stack from step to step; rates are null where the growth is unclear. */
export interface LeakSite {
  device: string;
  classification: "leak" | "too_few_steps" | "stopped" | "slowing" | "unclear" | "with_work";
  /** retained: blocks accumulate; replaced: by larger ones */
  kind: "retained" | "replaced";
  /** growth, with its 95% interval */
  bytes_per_step: number | null;
  bytes_per_step_low: number | null;
  bytes_per_step_high: number | null;
  /** null where each step replaces its block */
  blocks_per_step: number | null;
  /** analyzed steps that left memory behind */
  growing_step_count: number | null;
  analyzed_step_count: number | null;
  /** with growth; steps count from 0 */
  first_step: number;
  first_step_ns: number;
  /** with growth */
  last_step: number;
  last_step_ns: number;
  /** step boundaries that its freed blocks live through at most; null when none is freed */
  freed_after_steps: number | null;
  /** at the last step's start, in blocks allocated after the warm-up */
  held_bytes: number;
  held_block_count: number;
  /** without a stack: only blocks of this size */
  requested_bytes: number | null;
  /** stacks that leak at this source line */
  stack_count: number;
  /** the one that grows fastest */
  stack: Stack | null;
}

/** A stack that leaks; `group` is its index in `groups`. */
export interface Leak extends LeakSite {
  group: number;
}

/** What several steps leave at one stack until it is freed together, again and again. */
export interface KeptSite {
  device: string;
  /** at most at one time, after the steps that made them */
  bytes: number;
  block_count: number;
  /** at most, whose blocks are freed in one step */
  step_count: number;
  /** steps that free blocks of several steps */
  times: number;
  stack: Stack | null;
}

/** Growth of the host's memory that is no tensors. */
export interface HostGrowth {
  /** anonymous memory of the process, or PSS of the other processes of the job */
  of: "process" | "other_processes";
  /** at the first sample after the warm-up */
  from_bytes: number;
  from_ns: number;
  /** at the last sample */
  to_bytes: number;
  to_ns: number;
  bytes_per_second: number;
  /** growth of the process's tensors on the CPU in that time */
  tensor_bytes: number | null;
}

/** What grows on one device, by owner. */
export interface DeviceGrowth extends GrowthByOwners {
  device: string;
}

/** The training steps, and how they were told. */
export interface TrainingSteps {
  source: "none" | "given" | "annotation" | "optimizer" | "stack" | "sizes";
  count: number;
  warmup_count: number;
  analyzed_count: number;
  /** 0 to 1; null for given steps */
  regularity: number | null;
  /** stack that starts a step */
  anchor: Stack | null;
  /** name of the marks that start a step */
  mark: string | null;
  starts_ns: number[];
}

/** Memory that grows from step to step. */
export interface Leaks extends OfRecording {
  verdict: "leak" | "no_leak" | "insufficient_data";
  insufficient_data_reason: "no_events" | "no_steps" | "too_few_steps" | null;
  /** of all groups above the floor; null without a verdict */
  bytes_per_step: number | null;
  /** fastest first */
  groups: LeakGroup[];
  other_group_count: number;
  /** of the listed groups, fastest first */
  leaks: Leak[];
  other_leak_count: number;
  /** --min-growth */
  min_growth_bytes_per_step: number | null;
  /** below the floor, fastest first: no part of the verdict */
  small_leaks: LeakSite[];
  /** of all of them */
  small_leaks_bytes_per_step: number | null;
  other_small_leak_count: number;
  /** growth that is not a leak, most bytes held first */
  non_leak_growth: LeakSite[];
  other_non_leak_growth_count: number;
  /** kept for several steps and then freed together, most bytes first: no part of the verdict */
  kept_over_steps: KeptSite[];
  other_kept_over_steps_count: number;
  /** from the warm-up to the last step, where it goes on all along: no part of the verdict */
  host_growth: HostGrowth[];
  /** by the owners that --by asks for; null without it */
  by: DeviceGrowth[] | null;
  steps: TrainingSteps;
}

/** Totals of the ledger at a sample. */
export interface LedgerPoint {
  time_ns: number;
  used_bytes: number;
  allocated_bytes: number | null;
  cached_bytes: number | null;
  /** by the device's `libraries` */
  library_bytes: number[];
  other_library_bytes: number;
  context_bytes: number | null;
  /** of all other processes */
  process_bytes: number | null;
}

/** One sampled device. */
export interface LedgerDevice {
  device: string;
  model: string | null;
  total_bytes: number | null;
  ledger: LedgerAt;
  /** those with the most memory at any time, at most five */
  libraries: string[];
  /** of at most 1,200 equal stretches of time, the sample with the most used bytes in each */
  points: LedgerPoint[];
}

/** Totals of the host's ledger at a sample. */
export interface HostPoint {
  time_ns: number;
  used_bytes: number;
  /** of the recorded process */
  main_bytes: number | null;
  /** of DataLoader workers */
  workers_bytes: number | null;
  /** of the job's other processes */
  job_bytes: number | null;
  /** of processes that are not the job's */
  other_bytes: number | null;
  shmem_bytes: number | null;
  cache_bytes: number | null;
  /** with sockets */
  kernel_bytes: number | null;
}

/** The host as a device of its own. */
export interface HostLedger {
  /** null: no sample had been taken by then */
  ledger: HostLedgerAt | null;
  killed: KilledProcess[];
  /** as those of devices */
  points: HostPoint[];
}

/** All memory of each GPU and of the host: PyTorch, libraries, context, processes, page cache. */
export interface Ledger extends OfRecording {
  devices: LedgerDevice[];
  /** null: not sampled, or another device was asked for */
  host: HostLedger | null;
}

/** The thread of a request. */
export interface RequestThread {
  tid: number;
  name: string | null;
}

/** The request that failed. */
export interface FailedRequest {
  bytes: number;
  /** of a new segment for it */
  segment_bytes: number | null;
  /** expandable segments were in force */
  expandable: boolean | null;
  stack: Stack | null;
  thread: RequestThread | null;
  /** handle; 0: the default stream */
  stream: number | null;
  /** id of a private pool */
  pool: number[] | null;
}

/** Free blocks that the allocator kept. */
export interface CachedMemory {
  bytes: number;
  block_count: number;
  largest_block_bytes: number;
}

/** Free memory of the allocator when the request failed, by whether the request could use it. */
export interface Cache {
  /** in segments of its stream, pool and kind */
  usable: CachedMemory;
  other_streams: CachedMemory;
  other_pools: CachedMemory;
  /** for small blocks where the request is large, or the other way round */
  other_segment_kinds: CachedMemory;
  /** freed by the program, still used by another stream */
  pending_free_bytes: number;
  /** in segments that are free as a whole */
  releasable_in_private_pools_bytes: number;
  /** likewise; kept while a CUDA graph is captured */
  releasable_in_default_pool_bytes: number;
}

/** Between which values the limit lies that was met. */
export interface MemoryLimit {
  at_least_bytes: number;
  below_bytes: number;
}

/** A cause of a failure, and how much memory it explains. */
export interface Cause {
  cause: "leak" | "other_process" | "limit" | "fragmentation" | "demand";
  bytes: number;
  certain: boolean;
  /** the numbers that show it */
  text: string;
}

/** A leak at the time of a failure. */
export interface LeakAtFailure {
  bytes_per_step: number;
  held_bytes: number;
  held_block_count: number;
  stack: Stack | null;
}

/** Whether memory grew from step to step before the failure. */
export interface LeakAnalysis {
  verdict: "leak" | "no_leak" | "insufficient_data";
  step_count: number;
  /** of what leaked, alive at the failure */
  leaked_bytes: number;
  /** fastest first */
  leaks: LeakAtFailure[];
}

/** A change that would have let the request succeed. */
export interface Fix {
  kind: "free_blocks" | "stop_leak" | "free_device" | "raise_limit" | "empty_private_pool" | "empty_cache_before" | "same_stream" | "smaller_request" | "expandable_segments" | "settings";
  /** how much it frees, gives or asks for less */
  bytes: number;
  certain: boolean;
  /** free_blocks: how many to free */
  block_count: number | null;
  /** free_blocks: of so many live blocks of the stack */
  stack_block_count: number | null;
  /** of free_blocks */
  stack: Stack | null;
  /** what to change */
  text: string;
  /** how to verify it */
  check: string;
}

/** What held memory when the request failed. */
export interface TopAllocation extends Holder {
  bytes: number;
  block_count: number;
  /** of allocated_bytes */
  share: number;
  /** when the first of these blocks was allocated */
  oldest_at_ns: number;
  newest_at_ns: number;
}

/** A module, and what it held. */
export interface ModuleHeld {
  module: string;
  held_bytes: number;
}

/** A change of the program that would need less memory at the failure. */
export interface FailureAdvice {
  kind: "checkpoint_activations" | "gradients_in_forward" | "frozen_gradients" | "frozen_optimizer_state" | "large_optimizer_state" | "attention_matrices" | "logits" | "logits_upcast" | "gradient_buckets" | "gathered_parameters" | "checkpoint_copies" | "loaded_checkpoint" | "model_copies" | "retained_graph" | "inference_with_autograd" | "unused_gradients" | "forwards_before_backward" | "checkpoint_each_layer" | "optimizer_temporaries" | "kept_over_steps" | "failed_call" | "repeated_concatenation" | "collected_results" | "held_results";
  /** that it would not hold */
  held_bytes: number;
  /** the least certain of the blocks concerned */
  confidence: "exact" | "estimated" | "unknown";
  /** the request was for another one of these blocks */
  has_request: boolean;
  /** is at least what was missing; null: not known */
  suffices: boolean | null;
  block_count: number;
  /** that are concerned, most bytes first */
  modules: ModuleHeld[];
  /** of most of these bytes */
  stack: Stack | null;
}

/** An out-of-memory error, or several equal ones. */
export interface Failure {
  device: string;
  /** what failed and why, a sentence */
  message: string;
  /** the main one; null: not known */
  cause: "leak" | "other_process" | "limit" | "fragmentation" | "demand" | null;
  /** equal errors */
  count: number;
  first_at_ns: number;
  last_at_ns: number;
  request: FailedRequest;
  /** then */
  allocated_bytes: number;
  reserved_bytes: number | null;
  /** reserved, and in no block */
  cached_bytes: number | null;
  /** as the driver reported, or as of the last sample */
  device_free_bytes: number | null;
  /** time of the sample nearest to the failure, before or after it; null: the driver reported it at the failure */
  device_free_sampled_at_ns: number | null;
  /** of the device */
  capacity_bytes: number | null;
  /** in use on the device, but not reserved; known with a capacity */
  outside_pytorch_bytes: number | null;
  /** the part of it that other processes use */
  other_processes_bytes: number | null;
  /** null: segments are not known */
  cache: Cache | null;
  refused_by: "unknown" | "device" | "limit";
  /** of what the process may reserve, where that refused */
  limit: MemoryLimit | null;
  /** that the driver, or at most the limit, was short of */
  missing_bytes: number | null;
  /** the main one first, what is not certain last */
  causes: Cause[];
  leak_analysis: LeakAnalysis;
  /** certain ones first */
  fixes: Fix[];
  /** most bytes first */
  top_allocations: TopAllocation[];
  other_stack_count: number;
  other_stacks_bytes: number;
  /** the same by call site */
  call_sites: CallSite[];
  other_call_site_count: number;
  other_call_sites_bytes: number;
  /** allocated, in no recorded block */
  unrecorded_bytes: number;
  /** allocated for activations, inputs and temporaries, which grow with the batch */
  batch_bytes?: number | null;
  /** most bytes first */
  advice?: FailureAdvice[];
}

/** Peaks of a device. */
export interface DevicePeaks {
  device: string;
  peak_allocated_bytes: number;
  peak_allocated_at_ns: number | null;
  peak_reserved_bytes: number | null;
  peak_reserved_at_ns: number | null;
}

/** Out-of-memory errors: cause, top allocations, possible fixes. */
export interface Explanation extends OfRecording {
  /** --capacity */
  capacity_bytes: number | null;
  out_of_memory_count: number;
  /** latest first, equal ones as one */
  failures: Failure[];
  other_failure_count: number;
  killed: KilledProcess[];
  devices: DevicePeaks[];
}

/** By what stacks of the two runs were matched. */
export interface StackMatching {
  lines: boolean;
  python_frames: boolean;
  native_frames: boolean;
  qualified_names: boolean;
}

/** A value in both runs; null where it is not known. */
export interface ComparedValue {
  a: number | null;
  b: number | null;
  change: number | null;
}

/** A device whose peak grew by more than was allowed. */
export interface OverBudget {
  device: string;
  peak_allocated_bytes: ComparedValue;
  excess_bytes: number;
}

/** The limit that `--fail-over` set, and whether it was kept. */
export interface Budget {
  limit: string;
  exceeded: boolean;
  over: OverBudget[];
}

/** Memory of one category in both runs. */
export interface ComparedCategory {
  category: "parameter" | "buffer" | "gradient" | "per_sample_gradient" | "optimizer_state" | "activation" | "input" | "temporary" | "workspace" | "copy" | "unknown";
  /** held at the device's own peak */
  peak_bytes: ComparedValue;
}

/** Stacks that changed alike. */
export interface ChangeGroup {
  stack_count: number;
  /** the sum of their changes */
  change_bytes: number;
}

/** A stack or owner in both runs. */
export interface ComparedRow extends Holder {
  kind: "added" | "removed" | "grew" | "shrank";
  /** held at the device's own peak */
  peak_bytes: ComparedValue;
  peak_block_count: ComparedValue;
  /** the sum of all allocations */
  total_allocated_bytes: ComparedValue;
  allocation_count: ComparedValue;
}

/** A device in both runs. */
export interface ComparedDevice {
  device: string;
  in_a: boolean;
  in_b: boolean;
  peak_allocated_bytes: ComparedValue;
  peak_reserved_bytes: ComparedValue;
  peak_active_bytes: ComparedValue;
  allocation_count: ComparedValue;
  total_allocated_bytes: ComparedValue;
  unrecorded_at_peak_bytes: ComparedValue;
  /** the largest change first; in recordings that have owners */
  categories_at_peak?: ComparedCategory[];
  /** not in A on this device */
  added: ChangeGroup;
  /** not in B */
  removed: ChangeGroup;
  /** more bytes, or as many in more blocks */
  grew: ChangeGroup;
  /** less */
  shrank: ChangeGroup;
  unchanged: ChangeGroup;
  /** the largest change first */
  rows: ComparedRow[];
  other_row_count: number;
  other_change_bytes: number;
}

/** What changed between two runs: totals of each device, and which stacks hold more or less. */
export interface Comparison {
  a: OfRecording;
  b: OfRecording;
  by: "peak" | "traffic";
  matching: StackMatching;
  /** null without --fail-over */
  budget: Budget | null;
  devices: ComparedDevice[];
}

/** The allocator at one time. */
export interface AllocatorState {
  allocated_bytes: number | null;
  reserved_bytes: number | null;
  /** block in a segment */
  largest_free_bytes: number | null;
  free_block_count: number | null;
}

/** What the allocator did. */
export interface AllocatorOutcome {
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  peak_active_bytes: number | null;
  peak_inactive_split_bytes: number | null;
  /** the cache was emptied for lack of memory */
  retry_count: number | null;
  /** reserved from the driver in all; those that grow do not count */
  segment_count: number | null;
  end_segment_count: number | null;
  /** at the recorded peak of allocated memory */
  at_recorded_peak: AllocatorState;
  at_end: AllocatorState;
}

/** A device as it was recorded. */
export interface SimulatedDevice {
  device: string;
  /** that the process can reserve; null: without a limit */
  limit_bytes: number | null;
  recorded: AllocatorOutcome;
}

/** What the allocator did on one device. */
export interface DeviceOutcome extends AllocatorOutcome {
  device: string;
}

/** The recording replayed under some settings of the allocator. */
export interface SimulatedRun {
  /** as in PYTORCH_CUDA_ALLOC_CONF; "": the defaults */
  settings: string;
  /** of all devices */
  peak_reserved_bytes: number;
  /** negative: it takes more; null where memory ran out before the end */
  saved_bytes: number | null;
  retry_count: number;
  /** where it did not in the recording: the replay ends there */
  out_of_memory_at_ns: number | null;
  /** requests that failed when recorded, and did not here */
  passed_failure_count: number;
  devices: DeviceOutcome[];
}

/** What other settings of the allocator would have done. */
export interface Simulation extends OfRecording {
  replayed_by: "pytorch" | "model";
  /** whose allocator replayed */
  torch_version: string | null;
  /** the recorded ones; otherwise taken to be the defaults */
  settings_known: boolean;
  /** the requested ones; otherwise those of the blocks */
  sizes_known: boolean;
  /** blocks that were there before the first event */
  start_block_count: number;
  failed_request_count: number;
  /** as torch.cuda.set_per_process_memory_fraction() sets it */
  limit_by_fraction: boolean;
  devices: SimulatedDevice[];
  /** recorded peak reserved less the replayed one: 0 where the replay is exact */
  reserved_error_bytes: number;
  /** under the recorded settings */
  as_recorded: SimulatedRun;
  /** best first */
  runs: SimulatedRun[];
  notes: string[];
}

/** A recorded process of the job, and how it ended. */
export interface RestartRank {
  file: string;
  rank: number | null;
  pid: number | null;
  hostname: string | null;
  /** survived: it continued with further steps after a failed request */
  end: "no_failure" | "out_of_memory" | "killed" | "survived";
  /** of the last failed request; null: the host, or none failed */
  device: string | null;
  requested_bytes: number | null;
  /** itself, or a process that it started */
  killed_pid: number | null;
  /** of the last failed request, or when it was found killed */
  failed_at_ns: number | null;
  /** Unix time */
  failed_wall_ns: number | null;
}

/** The failed request of the first rank, and the steps before it. */
export interface RestartEvidence {
  /** what failed and why, a sentence */
  message: string;
  /** as in `explain`; null: not known */
  cause: "leak" | "other_process" | "limit" | "fragmentation" | "demand" | null;
  requested_bytes: number;
  missing_bytes: number | null;
  /** from 1; 0: before the first; null: not known */
  step: number | null;
  /** otherwise it may be off by one */
  step_is_exact: boolean;
  /** otherwise the recording is the last part of a longer one */
  from_start: boolean;
  complete_step_count: number;
  /** allocated in recorded blocks, and the request */
  need_bytes: number;
  /** of the earlier, complete steps, in recorded blocks */
  highest_step_peak_bytes: number | null;
  leaked_bytes: number | null;
  leak_bytes_per_step: number | null;
}

/** A change for the next attempt. */
export interface RestartChange {
  /** the smallest change first */
  kind: "allocator_settings" | "batch" | "planned" | "limit" | "program";
  /** its kind in `explain`: of a fix or of advice */
  detail: string | null;
  /** what to change */
  text: string;
  /** that it saves or makes usable; of a planned change what a device needs with it */
  bytes: number;
  /** null: unknown, because later requests of the step are */
  enough: boolean | null;
  /** of a leak that goes on: about when memory runs out then */
  until_step: number | null;
  /** of its bytes and of `enough` */
  confidence: "exact" | "estimated" | "unknown";
  /** the allocator that replayed it, "PyTorch 2.11.0", or "plan" */
  verified_by: string | null;
  /** for PYTORCH_ALLOC_CONF */
  allocator_settings: string | null;
  /** the batch is divided by it */
  batch_divisor: number | null;
  /** of advice */
  stack: Stack | null;
}

/** An argument of the next attempt's command. */
export interface ChangedArgument {
  /** "batch", "accumulation" or "checkpointing" */
  name: string;
  option: string;
  /** null: the command did not have it */
  was: string | null;
  /** null: a flag */
  value: string | null;
}

/** What a launcher can start next; tidemark starts nothing. */
export interface NextAttempt {
  /** index into `changes` */
  change: number;
  changed_arguments: ChangedArgument[];
  /** variables to set */
  environment: Record<string, string>;
  /** the changed command */
  command: string[];
}

/** Whether a job that ran out of memory will do so again, and what to change. */
export interface RestartVerdict {
  will_recur: "unknown" | "no" | "yes";
  /** from 1, if the program starts from the beginning; with `unknown` only if the same data come in the same order */
  at_step: number | null;
  earliest_step: number | null;
  latest_step: number | null;
  /** exact: each run does the same; estimated: likely */
  confidence: "exact" | "estimated" | "unknown";
  reason: "no_failure" | "survived" | "leak" | "growing_steps" | "setup" | "first_steps" | "other_phase" | "larger_step" | "fragmentation" | "memory_of_others" | "host_memory" | "not_recorded";
  /** the verdict in sentences */
  message: string;
  /** the process that ran out of memory first */
  first: RestartRank | null;
  /** null: no request failed, or the recording could not be examined */
  evidence: RestartEvidence | null;
  /** enough ones first, then the smallest change first */
  changes: RestartChange[];
  /** with `--apply`; null: no change could be applied */
  next_attempt: NextAttempt | null;
  /** why there is no next attempt */
  not_applied: string | null;
  world_size: number | null;
  /** without a recording, at most 64 */
  missing_ranks: number[];
  missing_rank_count: number;
  /** of the folder, of earlier attempts: not used */
  older_recording_count: number;
  /** by rank */
  ranks: RestartRank[];
}

/** A library that takes memory of the GPU besides PyTorch's allocator. */
export interface PlannedLibrary {
  /** of its file */
  name: string;
  peak_bytes: number;
}

/** A GPU on which a process allocates. */
export interface PlannedDevice {
  /** the process's recording */
  file: string;
  rank: number | null;
  device: string;
  /** among the planned GPUs */
  gpu_index: number;
  /** on this GPU */
  process_count: number;
  /** training steps of the process */
  steps: number;
  fits: boolean;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number | null;
  /** maximum of parameters, gradients and optimizer states at one time; null: not known */
  peak_model_bytes: number | null;
  /** an estimate for cuBLAS, cuDNN and the code of kernels */
  driver_bytes: number;
  /** an estimate for the process's communicators; 0 also where it is not known */
  nccl_bytes: number;
  /** in device_used_bytes */
  libraries: PlannedLibrary[];
  /** at most, by all processes of the GPU */
  device_used_bytes: number;
  /** memory less that; 0 where it does not fit */
  headroom_bytes: number;
  out_of_memory_count: number;
  /** growth by all leaks of the process; null: none was found */
  leak_bytes_per_step: number | null;
  /** what the figures do not say for certain, one sentence each */
  uncertain: string[];
}

/** How much memory a program would take on a GPU. */
export interface Plan {
  /** on all GPUs */
  fits: boolean;
  /** a sentence */
  verdict: string;
  gpu: string;
  /** of each device, as its driver reports it */
  memory_bytes: number;
  /** of the driver's context, an estimate */
  context_bytes: number;
  /** on this GPU; otherwise it is that of an H200 */
  context_measured: boolean;
  /** page-locked memory of the host: the sum of all processes' peaks */
  pinned_bytes: number;
  /** training steps that all ranks made */
  steps: number;
  /** how these are counted */
  steps_by: "marks" | "optimizers" | null;
  /** the plan ended the program after the last step that was asked for */
  stopped: boolean;
  torch_version: string;
  /** of the program; null when a signal ended it, or the plan after its last step */
  exit_code: number | null;
  /** results that the program read and the plan does not know: zeros here */
  read_count: number;
  /** operations whose workspace was estimated, as the next two */
  cudnn_estimate_count: number;
  cusolver_estimate_count: number;
  cufft_estimate_count: number;
  cusparse_estimate_count: number;
  /** kernels whose machine code for this GPU is not known */
  kernel_estimate_count: number;
  /** that made no step though they have parameters of their own on a GPU */
  idle_optimizer_count: number;
  /** of CUDA, that the phantom GPU has no answer for */
  unanswered_functions: string[];
  /** those with least headroom first */
  devices: PlannedDevice[];
}

/** What one run of the program took. */
export interface Trial {
  /** null: it failed otherwise than for memory */
  fits: boolean | null;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  /** with the context */
  device_used_bytes: number | null;
  /** of a device, as its driver reports it */
  memory_bytes: number | null;
  /** a request failed: the peaks are those until then */
  out_of_memory: boolean;
  /** why there is no result */
  failure: string | null;
  /** of the whole trial */
  duration_ns: number;
  /** the highest resident memory of one of its processes */
  host_bytes: number;
  /** what the figures do not say for certain, one sentence each */
  uncertain: string[];
}

/** A value that was tried. */
export interface FitTrial extends Trial {
  value: number;
}

/** The largest value of an argument that fits. */
export interface Fit {
  name: string;
  option: string;
  /** that was tried and fits */
  largest: number | null;
  low: number;
  high: number;
  step: number;
  gpu: string;
  /** of each device */
  memory_bytes: number;
  /** of the memory, that must stay free */
  margin_share: number;
  /** memory less the margin */
  limit_bytes: number;
  /** no larger value took less memory than a smaller one */
  monotone: boolean;
  /** in the order in which they ran */
  trials: FitTrial[];
}

/** What `plan --fit` found. */
export interface FitDocument {
  fit: Fit;
}

/** Peaks and number of allocations. */
export interface VerifiedPeaks {
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  allocation_count: number;
}

/** An event of the allocator. */
export interface VerifiedEvent {
  kind: "allocate" | "free" | "out_of_memory" | "pause" | "resume" | "release";
  bytes: number;
  /** after it, as the next */
  allocated_bytes: number;
  reserved_bytes: number;
}

/** The first event that differs. */
export interface EventDifference {
  /** of the planned events, from 0 */
  index: number;
  planned: VerifiedEvent | null;
  real: VerifiedEvent | null;
}

/** A device of the plan, and of the real run. */
export interface VerifiedDevice {
  rank: number | null;
  device: string;
  /** both peaks */
  within_tolerance: boolean;
  /** of the plan */
  event_count: number;
  /** and real: up to that number of events */
  planned: VerifiedPeaks;
  real: VerifiedPeaks;
  /** null: all events are equal */
  first_difference: EventDifference | null;
}

/** A plan compared with a real run. */
export interface Verification {
  /** every event, on all devices */
  equal: boolean;
  /** both peaks, on all devices */
  within_tolerance: boolean;
  tolerance_share: number;
  devices: VerifiedDevice[];
}

/** An argument whose values are tried. */
export interface VariedArgument {
  name: string;
  option: string;
  values: string[];
}

/** A GPU for which the program is tried. */
export interface SweptGpu {
  name: string;
  memory_bytes: number | null;
  /** of a planned GPU */
  context_bytes: number | null;
}

/** What the laws say of a combination that has no peaks of the whole program. */
export interface Prediction {
  fits: boolean | null;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
}

/** A combination of values. */
export interface SweepRow {
  gpu: string;
  /** by argument */
  values: Record<string, string>;
  /** index into `groups` */
  group: number;
  /** null: it has not run */
  result: Trial | null;
  /** bytes by category, at the peak */
  categories: Record<string, number> | null;
  /** null where there is a result */
  prediction: Prediction | null;
  /** of the trial's files */
  folder: string | null;
}

/** A product of arguments. */
export interface LawTerm {
  /** by argument; empty: the constant */
  powers: Record<string, number>;
  /** bytes, by group; one for all groups where it is shared */
  coefficients: (number | null)[];
}

/** Memory as a function of the arguments. */
export interface Law {
  /** a formula; several where groups differ */
  text: string[];
  terms: LawTerm[];
  trial_count: number;
  /** of trials predicted from the others */
  median_error_share: number;
  largest_error_share: number;
}

/** What a category holds at the peak, as a function of the arguments. */
export interface CategoryLaw {
  category: "parameter" | "buffer" | "gradient" | "per_sample_gradient" | "optimizer_state" | "activation" | "input" | "temporary" | "workspace" | "copy" | "unknown";
  /** a formula; several where groups differ */
  text: string[];
  terms: LawTerm[];
  trial_count: number;
  /** of trials predicted from the others */
  median_error_share: number;
  largest_error_share: number;
}

/** Memory as functions of the arguments; null: too few trials. */
export interface Laws {
  peak_allocated_bytes: Law | null;
  peak_reserved_bytes: Law | null;
  by_category: CategoryLaw[] | null;
}

/** A program tried with combinations of arguments. */
export interface Sweep {
  /** with its placeholders */
  program: string[];
  arguments: VariedArgument[];
  gpus: SweptGpu[];
  /** that laws may tell apart: the values of arguments that are no numbers, and the GPU */
  groups: string[];
  /** by GPU; the last argument changes fastest */
  rows: SweepRow[];
  laws: Laws;
}

/** A safetensors file. */
export interface ModelFile {
  file: string;
  tensor_count: number;
  bytes: number;
}

/** Tensors that have this in common. */
export interface ModelModule {
  module: string;
  tensor_count: number;
  parameters: number;
  bytes: number;
}

/** Tensors that have this in common. */
export interface ModelLayer {
  layer: string;
  tensor_count: number;
  parameters: number;
  bytes: number;
}

/** Tensors that have this in common. */
export interface ModelDtype {
  dtype: string;
  tensor_count: number;
  parameters: number;
  bytes: number;
}

/** Tensors that have this in common. */
export interface ModelShape {
  shape: string;
  tensor_count: number;
  parameters: number;
  bytes: number;
}

/** Blocks of the model that are alike. */
export interface RepeatedBlocks {
  first: string;
  last: string;
  count: number;
  /** of each, as the next */
  parameters: number;
  bytes: number;
}

/** A large tensor. */
export interface OversizedTensor {
  tensor: string;
  shape: number[];
  bytes: number;
}

/** LoRA weights of one rank. */
export interface BytesOfRank {
  rank: number;
  bytes: number;
}

/** Adapted modules of one name. */
export interface TargetModule {
  /** last part of their paths */
  module: string;
  count: number;
}

/** A module with LoRA weights. */
export interface AdaptedModule {
  module: string;
  adapter: string | null;
  rank: number | null;
  /** both A and B are there */
  complete: boolean;
  parameters: number;
  bytes: number;
  /** of the weight that is adapted, where it is in the files too */
  base_parameters: number | null;
}

/** LoRA weights, and what they are added to. */
export interface LoraWeights {
  parameters: number;
  bytes: number;
  /** of all else */
  base_parameters: number;
  base_bytes: number;
  ranks: BytesOfRank[];
  target_modules: TargetModule[];
  modules: AdaptedModule[];
}

/** What adapter_config.json says. */
export interface AdapterConfig {
  rank: number | null;
  alpha: number | null;
  target_modules: string[];
  base_model: string | null;
}

/** What a model's safetensors files take. */
export interface Model {
  file: string;
  tensor_count: number;
  parameters: number;
  bytes: number;
  files: ModelFile[];
  /** each with all that is below it, parents before children */
  modules: ModelModule[];
  /** they add up to the whole, as the next two do */
  layers: ModelLayer[];
  dtypes: ModelDtype[];
  shapes: ModelShape[];
  repeated_blocks: RepeatedBlocks[];
  /** --oversized */
  oversized_threshold_bytes: number;
  /** largest first */
  oversized: OversizedTensor[];
  /** null: there is none */
  lora: LoraWeights | null;
  /** null: there is none */
  adapter_config: AdapterConfig | null;
  /** what the writer noted, by key, such as "format" */
  metadata: Record<string, string>;
}

/** A device's memory now, in bytes. */
export interface CurrentMemory {
  /** used, by the driver */
  allocated: number | null;
  free: number | null;
  total: number | null;
  /** percent of the total */
  utilization: number | null;
}

/** Of all samples of a device. */
export interface ProfiledStatistics {
  /** of memory, percent of the total */
  avg_utilization: number | null;
  max_utilization: number | null;
  /** 1 - allocated / reserved of recorded processes on it; null: none is recorded */
  avg_fragmentation: number | null;
  num_snapshots: number;
}

/** Of a number that was read again and again. */
export interface AverageAndMaximum {
  avg: number | null;
  max: number | null;
}

/** What was used over time: arrays of one length. */
export interface UsageHistory {
  /** when a stretch of samples ends */
  time_seconds: number[];
  /** then */
  used_bytes: number[];
  /** the least in the stretch */
  low_bytes: number[];
  /** the most */
  peak_bytes: number[];
}

/** When something is reached: expected, and a 90% interval. */
export interface ForecastInterval {
  expected: number;
  earliest: number;
  /** null: perhaps never */
  latest: number | null;
}

/** What an assessment follows from. */
export interface RiskEvidence {
  /** since the latest change */
  sample_count: number;
  /** of these */
  span_seconds: number;
  /** that were found before */
  change_points: number;
  /** of what repeats */
  period_seconds: number | null;
}

/** Whether a memory will run out, and when; all but the recommendation is null without samples. */
export interface RiskAssessment {
  risk_level: "low" | "medium" | "high" | "critical" | null;
  /** how often such assessments were right on labelled runs; null: too little to judge from */
  confidence: number | null;
  /** of the limit */
  current_usage_percent: number | null;
  /** of the running peak */
  growth_rate_mb_per_sec: number | null;
  /** null: the limit is not reached */
  predicted_oom_time_seconds: number | null;
  /** what to do, and the evidence that says so */
  recommendation: string;
  pattern: "unknown" | "steady" | "warm_up" | "sawtooth" | "level" | "growth" | "steps" | "released" | null;
  /** half of the 90% interval */
  growth_error_mb_per_sec: number | null;
  /** null: it is not reached */
  seconds_to_limit: ForecastInterval | null;
  /** null also where steps are not known */
  steps_to_limit: ForecastInterval | null;
  evidence: RiskEvidence | null;
}

/** Memory of a device over a while. */
export interface ProfiledDevice {
  current_memory: CurrentMemory;
  /** bytes */
  peak_memory: number | null;
  statistics: ProfiledStatistics;
  name: string | null;
  vendor: string | null;
  uuid: string | null;
  bus_id: string | null;
  /** why nothing more comes of it */
  lost: string | null;
  peak_at_seconds: number | null;
  /** recorded: between samples, as a recorder saw it */
  peak_is: "sampled" | "recorded" | null;
  driver_reserved_bytes: number | null;
  gpu_utilization_percent: AverageAndMaximum;
  temperature_celsius: number | null;
  power_milliwatts: number | null;
  history: UsageHistory;
  /** of `interactive` */
  risk_assessment?: RiskAssessment;
}

/** Whether a process will run out of memory, as long as others take no more. */
export interface ProcessRisk extends RiskAssessment {
  /** what it has, and what is free */
  limit_bytes: number;
}

/** What a process has of a device. */
export interface ProcessOnDevice {
  /** null: it is not on it now, or the driver does not say */
  bytes: number | null;
  peak_bytes: number | null;
  /** null: not assessed */
  risk_assessment: ProcessRisk | null;
}

/** A process that was on a device, or was watched; those that have ended too. */
export interface WatchedProcess {
  /** as the driver numbers it */
  pid: number;
  name: string | null;
  kind: "recorded" | "job" | "other" | "ended" | "other_namespace";
  ended: boolean;
  first_seen_seconds: number;
  last_seen_seconds: number;
  /** by the devices' keys */
  devices: Record<string, ProcessOnDevice>;
  rss_bytes: number | null;
  peak_rss_bytes: number | null;
  pss_bytes: number | null;
  peak_pss_bytes: number | null;
  /** of its memory on the host; null: not assessed */
  risk_assessment: ProcessRisk | null;
  role: "other" | "main" | "rank" | "data_worker" | "resource_tracker" | "fork_server" | "compile_worker" | "launcher" | "child" | null;
  /** of a rank or DataLoader worker */
  number: number | null;
  /** of these */
  count: number | null;
  parent_pid: number | null;
  anon_bytes: number | null;
  file_bytes: number | null;
  shmem_bytes: number | null;
  swap_bytes: number | null;
  locked_bytes: number | null;
  pinned_bytes: number | null;
}

/** A process of the job that the kernel's OOM killer ended. */
export interface WatchedKill {
  time_ns: number;
  process: HostProcess;
  /** how it is known */
  evidence: "kernel_log" | "exit_signal" | "vanished";
  /** whose memory was short */
  scope: "unknown" | "cgroup" | "machine";
  /** the most of the samples shortly before */
  cgroup_usage_bytes: number | null;
  cgroup_limit_bytes: number | null;
}

/** What the allocator of a recorded process has of a device. */
export interface RecordedDevice {
  /** its key in `devices`; null where it cannot be told */
  device: string | null;
  allocated_bytes: number;
  /** null on the CPU */
  reserved_bytes: number | null;
  /** since watching began, as all that follow */
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  /** 1 - allocated / reserved */
  avg_unused_share: number | null;
  max_unused_share: number | null;
  num_snapshots: number;
}

/** A process that was being recorded. */
export interface RecordedProcess {
  pid: number;
  /** without other arguments */
  command: string;
  rank: number | null;
  file: string;
  state: "growing" | "ended" | "recorder_gone" | "changed";
  /** why it is not read any further */
  problem: string | null;
  /** of training that were seen; null: not known */
  steps: number | null;
  /** of the host's memory; null: none was recorded */
  cuda_pinned_bytes: number | null;
  /** of its job, for lack of host memory */
  killed: WatchedKill[];
  /** by PyTorch's names */
  devices: Record<string, RecordedDevice>;
  /** of the program's time, that its events are read late */
  behind_seconds?: number | null;
  /** of the file */
  behind_bytes?: number;
  /** that were never read */
  skipped_events?: number;
  /** up to when they are missing */
  skipped_until_ns?: number | null;
}

/** The host's memory, and that of its control group. */
export interface WatchedHost {
  total_bytes: number | null;
  /** without swapping */
  available_bytes: number | null;
  limit_bytes: number | null;
  limited_by: "cgroup" | "machine" | null;
  /** that counts against the limit */
  used_bytes: number | null;
  peak_bytes: number | null;
  anon_bytes: number | null;
  cache_bytes: number | null;
  shmem_bytes: number | null;
  kernel_bytes: number | null;
  socket_bytes: number | null;
  swap_bytes: number | null;
  /** the process whose control group it is; null: that of who watches */
  cgroup_pid: number | null;
  cgroup_folder: string | null;
  /** with cached files */
  cgroup_usage_bytes: number | null;
  /** of that */
  cgroup_inactive_file_bytes: number | null;
  /** since the group exists */
  cgroup_oom_kills: number | null;
  cgroup_oom_kills_at_start: number | null;
}

/** A moment that somebody marked. */
export interface WatchMark {
  seconds: number;
  name: string;
}

/** Memory of devices and processes over a while. */
export interface ProfileReport {
  /** UTC */
  timestamp: string;
  command: "profile" | "interactive";
  started: string;
  duration_seconds: number;
  interval_seconds: number;
  ended_by: "duration" | "interrupted" | "process_ended" | "stopped" | "not_yet" | null;
  /** --pid */
  pid: number | null;
  /** what was not seen and why: sentences */
  notes: string[];
  /** by key */
  devices: Record<string, ProfiledDevice>;
  processes: WatchedProcess[];
  /** processes that were being recorded */
  recorded: RecordedProcess[];
  host: WatchedHost;
  /** of `interactive` */
  marks?: WatchMark[];
}

/** Whether a device will run out of memory. */
export interface RiskyDevice {
  risk_assessment: RiskAssessment;
  name: string | null;
  vendor: string | null;
  uuid: string | null;
  bus_id: string | null;
  /** why nothing more comes of it */
  lost: string | null;
  current_memory: CurrentMemory;
  /** what programs can have of it */
  limit_bytes: number | null;
  /** bytes */
  peak_memory: number | null;
  peak_is: "sampled" | "recorded" | null;
  num_snapshots: number;
}

/** Whether the host will run out of memory. */
export interface RiskyHost {
  total_bytes: number | null;
  /** without swapping */
  available_bytes: number | null;
  limit_bytes: number | null;
  limited_by: "cgroup" | "machine" | null;
  /** that counts against the limit */
  used_bytes: number | null;
  peak_bytes: number | null;
  anon_bytes: number | null;
  cache_bytes: number | null;
  shmem_bytes: number | null;
  kernel_bytes: number | null;
  socket_bytes: number | null;
  swap_bytes: number | null;
  /** the process whose control group it is; null: that of who watches */
  cgroup_pid: number | null;
  cgroup_folder: string | null;
  /** with cached files */
  cgroup_usage_bytes: number | null;
  /** of that */
  cgroup_inactive_file_bytes: number | null;
  /** since the group exists */
  cgroup_oom_kills: number | null;
  cgroup_oom_kills_at_start: number | null;
  risk_assessment: RiskAssessment;
}

/** A change of a risk. */
export interface RiskChange {
  timestamp: string;
  /** its key */
  device: string;
  name: string | null;
  before: "low" | "medium" | "high" | "critical";
  /** a line */
  change: string;
  limit_bytes: number | null;
  risk_assessment: RiskAssessment;
}

/** Whether devices or the host will run out of memory. */
export interface OomReport {
  /** UTC */
  timestamp: string;
  command: "oom";
  started: string;
  duration_seconds: number;
  interval_seconds: number;
  ended_by: "duration" | "interrupted" | "process_ended" | "stopped" | "not_yet" | null;
  /** --pid */
  pid: number | null;
  /** what was not seen and why: sentences */
  notes: string[];
  /** --threshold */
  threshold_percent: number;
  /** by key */
  devices: Record<string, RiskyDevice>;
  host: RiskyHost;
  processes: WatchedProcess[];
  /** of risks, the latest ones */
  changes: RiskChange[];
  earlier_change_count: number;
}

/** What a verdict on growth follows from. */
export interface GrowthEvidence {
  sample_count: number;
  span_seconds: number;
  growth_seconds: number | null;
  step_count: number | null;
  /** of steps, or of stretches of time */
  growing_count: number | null;
  analyzed_count: number | null;
}

/** How a memory grows. */
export interface MemoryGrowth {
  memory: "device" | "process_device" | "host" | "process_host" | "allocated";
  title: string;
  /** its key; PyTorch's name of what is allocated */
  device: string | null;
  pid: number | null;
  measure: "used" | "pss" | "rss" | "allocated";
  verdict: "unknown" | "none" | "below_threshold" | "uncertain" | "growing";
  /** null: not known */
  growth_mb_per_minute: number | null;
  /** 95% interval */
  growth_mb_per_minute_low: number | null;
  growth_mb_per_minute_high: number | null;
  growth_bytes_per_step: number | null;
  classification: "leak" | "too_few_steps" | "stopped" | "slowing" | "unclear" | "with_work" | null;
  first_bytes: number;
  last_bytes: number;
  peak_bytes: number;
  evidence: GrowthEvidence;
}

/** A stack that leaks, since the process is followed. */
export interface GrowingStack {
  device: string;
  stack: Stack | null;
  growth_mb_per_minute: number;
  growth_bytes_per_step: number | null;
  growing_step_count: number;
  analyzed_step_count: number;
  /** now */
  held_bytes: number;
}

/** Stacks that leak, by the module that allocated them. */
export interface GrowingModule {
  device: string;
  /** null: outside of modules, or not known */
  module: string | null;
  growth_mb_per_minute: number;
  growth_bytes_per_step: number | null;
  held_bytes: number;
}

/** New storages that one object of the program refers to. */
export interface GrowingHolder {
  name: string;
  /** of references to one of them */
  chain: string;
  storage_count: number;
  bytes: number;
}

/** New storages of one kind of owner, as the program says. */
export interface GrowingType {
  kind: string;
  type: string | null;
  storage_count: number;
  bytes: number;
  /** without a chain of references */
  native_count: number;
  /** most bytes first */
  holders: GrowingHolder[];
  other_holder_count: number;
}

/** Storages that the program has since it was first asked. */
export interface NewStorages {
  count: number;
  bytes: number;
  asked_about: number;
  /** UTC */
  answered: string;
  /** why that was not at the end; null: it was */
  older_because: string | null;
  /** for which the program was held up */
  seconds_to_answer: number;
  /** of the search for chains */
  stopped_after_seconds: number | null;
  /** what the program could not find out */
  notes: string[];
}

/** What leaks in a recorded process. */
export interface LeakSource {
  pid: number;
  command: string;
  /** of the last part, as in `leaks --format json` */
  leaks: Leaks;
  /** of leaks.groups, in their order: what refers to the memory; null: unknown */
  holders: (string | null)[];
  /** at all steps that were seen, fastest first */
  by_stack: GrowingStack[];
  other_stack_count: number;
  by_module: GrowingModule[];
  /** null: the program does not say */
  object_types: GrowingType[] | null;
  object_types_unknown_because: string | null;
  new_storages: NewStorages | null;
}

/** What recorded processes say of growth. */
export interface LeakTracking {
  /** --enable-tracking */
  enabled: boolean;
  sources: LeakSource[] | null;
  unknown_because: string | null;
}

/** Which memory grows, and how fast. */
export interface LeakReport {
  /** UTC */
  timestamp: string;
  command: "leak";
  started: string;
  duration_seconds: number;
  interval_seconds: number;
  ended_by: "duration" | "interrupted" | "process_ended" | "stopped" | "not_yet" | null;
  /** --pid */
  pid: number | null;
  /** what was not seen and why: sentences */
  notes: string[];
  /** --threshold */
  threshold_mb_per_minute: number;
  growing_count: number;
  /** by kind of memory, the fastest first */
  growth: MemoryGrowth[];
  tracking: LeakTracking;
  processes: WatchedProcess[];
  host: WatchedHost;
}

/** How much of a device is reserved, but not allocated. */
export interface FragmentedDevice {
  name: string | null;
  vendor: string | null;
  uuid: string | null;
  bus_id: string | null;
  /** why nothing more comes of it */
  lost: string | null;
  current_memory: CurrentMemory;
  /** 1 - allocated / reserved of recorded processes on it */
  avg_fragmentation: number | null;
  unknown_because: string | null;
}

/** A process that was being recorded, and how its memory is fragmented. */
export interface FragmentedProcess {
  pid: number;
  /** without other arguments */
  command: string;
  rank: number | null;
  file: string;
  state: "growing" | "ended" | "recorder_gone" | "changed";
  /** why it is not read any further */
  problem: string | null;
  /** of training that were seen; null: not known */
  steps: number | null;
  /** of the host's memory; null: none was recorded */
  cuda_pinned_bytes: number | null;
  /** of its job, for lack of host memory */
  killed: WatchedKill[];
  /** by PyTorch's names */
  devices: Record<string, RecordedDevice>;
  /** of the program's time, that its events are read late */
  behind_seconds?: number | null;
  /** of the file */
  behind_bytes?: number;
  /** that were never read */
  skipped_events?: number;
  /** up to when they are missing */
  skipped_until_ns?: number | null;
  /** as in `fragmentation --format json` */
  fragmentation: Fragmentation | null;
}

/** Fragmentation of recorded processes while they run. */
export interface FragmentReport {
  /** UTC */
  timestamp: string;
  command: "fragment";
  started: string;
  duration_seconds: number;
  interval_seconds: number;
  ended_by: "duration" | "interrupted" | "process_ended" | "stopped" | "not_yet" | null;
  /** --pid */
  pid: number | null;
  /** what was not seen and why: sentences */
  notes: string[];
  /** by key */
  devices: Record<string, FragmentedDevice>;
  recorded: FragmentedProcess[];
  processes: WatchedProcess[];
}

/** The memory of all current ranks of one role. */
export interface RankRole {
  /** null: of ranks without one */
  role: string | null;
  rank_count: number;
  /** of these, whose memory is known */
  known_count: number;
  measure: "used" | "reserved" | "allocated";
  min_bytes: number | null;
  median_bytes: number | null;
  max_bytes: number | null;
  min_rank: number | null;
  max_rank: number | null;
}

/** A part of a rank's memory, compared with the median of its peers. */
export interface PartDifference {
  part: "category" | "unused" | "outside_allocator" | "allocated";
  category: "parameter" | "buffer" | "gradient" | "per_sample_gradient" | "optimizer_state" | "activation" | "input" | "temporary" | "workspace" | "copy" | "unknown" | null;
  difference_bytes: number;
  /** a clause */
  text: string;
}

/** A rank whose memory differs from that of its peers, the other ranks of its role. */
export interface RankOutlier {
  /** null: the process has none */
  rank: number | null;
  node: string | null;
  pid: number | null;
  measure: "used" | "reserved" | "allocated";
  bytes: number;
  peer_median_bytes: number;
  peer_count: number;
  /** what explains it, largest first; at most three. Empty: unknown */
  reasons: PartDifference[];
}

/** A rank whose steps take longer than those of its role. */
export interface Straggler {
  /** null: the process has none */
  rank: number | null;
  node: string | null;
  pid: number | null;
  step_seconds: number;
  median_seconds: number;
}

/** The job as a whole; risk, roles, outliers and stragglers are of nodes whose state is current. */
export interface Job {
  name: string;
  /** a sentence */
  verdict: string;
  /** null: not assessed */
  risk_level: "low" | "medium" | "high" | "critical" | null;
  /** how often such assessments were right on labelled runs */
  confidence: number | null;
  /** of the running peak */
  growth_rate_mb_per_sec: number | null;
  /** null: it is not reached */
  seconds_to_limit: ForecastInterval | null;
  /** null also where steps are not known */
  steps_to_limit: ForecastInterval | null;
  /** whose memory decides the risk; null: no rank's */
  deciding_rank: number | null;
  /** where that memory is */
  deciding_node: string | null;
  /** its key; null: the host */
  deciding_device: string | null;
  node_count: number;
  current_node_count: number;
  rank_count: number;
  /** as all ranks say */
  world_size: number | null;
  roles: RankRole[];
  /** largest difference first */
  outliers: RankOutlier[];
  /** the median of the ranks */
  step_seconds: number | null;
  /** slowest first */
  stragglers: Straggler[];
}

/** A device of a node, or its host. */
export interface JobDevice {
  /** its key; null: the host */
  device: string | null;
  name: string | null;
  /** why nothing more comes of it */
  lost: string | null;
  total_bytes: number | null;
  /** by all processes */
  used_bytes: number | null;
  /** since its agent was started */
  peak_bytes: number | null;
  /** what programs can have of it */
  limit_bytes: number | null;
  /** null: not assessed */
  risk_level: "low" | "medium" | "high" | "critical" | null;
  /** how often such assessments were right on labelled runs */
  confidence: number | null;
  /** of the running peak */
  growth_rate_mb_per_sec: number | null;
  /** null: it is not reached */
  seconds_to_limit: ForecastInterval | null;
  /** null also where steps are not known */
  steps_to_limit: ForecastInterval | null;
}

/** A machine of the job. */
export interface JobNode {
  node: string;
  /** old: not heard for a while; left: its agent was stopped */
  condition: "current" | "old" | "left";
  /** of its state */
  age_seconds: number;
  rank_count: number;
  devices: JobDevice[];
  host: JobDevice;
  /** another agent sends under the same name */
  has_rival: boolean;
  /** drivers that do not work, ranks of other jobs: sentences */
  problems: string[];
  message_count: number;
  lost_message_count: number;
  /** duplicates, and late ones */
  repeated_message_count: number;
  /** damaged, or too many at a time */
  refused_message_count: number;
}

/** A process that runs the job's program, with its memory on the device that it uses most. */
export interface JobRank {
  /** null: the process has none */
  rank: number | null;
  node: string;
  /** TIDEMARK_ROLE of its environment, else torchrun's role */
  role: string | null;
  local_rank: number | null;
  world_size: number | null;
  pid: number;
  process: string | null;
  /** false: its node is old or has left; the values are the latest ones */
  current: boolean;
  /** its key; null: none */
  device: string | null;
  /** null: the process is not recorded */
  allocated_bytes: number | null;
  reserved_bytes: number | null;
  /** of the device, by the driver; on a machine without GPUs its resident memory */
  used_bytes: number | null;
  /** on the node's other devices */
  other_devices_bytes: number | null;
  /** what it has and what is free, as long as others take no more */
  limit_bytes: number | null;
  /** null: not assessed */
  risk_level: "low" | "medium" | "high" | "critical" | null;
  /** how often such assessments were right on labelled runs */
  confidence: number | null;
  /** of the running peak */
  growth_rate_mb_per_sec: number | null;
  /** null: it is not reached */
  seconds_to_limit: ForecastInterval | null;
  /** null also where steps are not known */
  steps_to_limit: ForecastInterval | null;
  /** training steps since its agent was started */
  step_count: number | null;
  /** over the last two minutes */
  step_seconds: number | null;
}

/** Something that happened on a node. */
export interface JobEvent {
  /** by the node's clock, UTC */
  time: string;
  kind: "out_of_memory" | "risk" | "leak" | "dump" | "rank_started" | "rank_ended";
  node: string;
  /** null: of no rank */
  rank: number | null;
  pid: number | null;
  /** its key; null: of none */
  device: string | null;
  /** a clause */
  text: string;
}

/** The memory of a job on several machines. */
export interface JobReport {
  /** UTC */
  timestamp: string;
  command: "distributed";
  started: string;
  duration_seconds: number;
  ended_by: "duration" | "interrupted" | "process_ended" | "stopped" | "not_yet";
  /** what was not seen and why: sentences */
  notes: string[];
  job: Job;
  /** by name */
  nodes: JobNode[];
  /** by rank */
  ranks: JobRank[];
  /** the latest 256, in the order in which the coordinator got them */
  events: JobEvent[];
  /** before those */
  earlier_event_count: number;
}

/** What a rank did on a command. */
export interface CommandRank {
  /** null: the process has none */
  rank: number | null;
  node: string;
  pid: number;
  /** whether it did it; of a refused command, whether it could */
  ok: boolean;
  /** what it did, or why not: a clause */
  text: string;
}

/** A command to the ranks of a job, and how it ended. */
export interface CommandReport {
  command: string;
  /** when the coordinator got it, UTC */
  time: string;
  /** as the program that sent it says */
  who: string;
  /** refused: no rank has begun; failed: not all ranks have done it */
  state: "done" | "refused" | "failed";
  /** why it was refused, or failed; null: it was done */
  reason: string | null;
  /** those that it is for */
  ranks: CommandRank[];
}

/** A process on a device. Times are Unix times. */
export interface HistoryProcess {
  pid: number;
  name: string | null;
  first_ms: number;
  last_ms: number;
  peak_bytes: number;
  peak_at_ms: number;
}

/** A stretch of time. */
export interface HistoryPoint {
  /** when it begins */
  time_ms: number;
  span_ms: number;
  high_bytes: number;
  mean_bytes: number;
}

/** A GPU, or the host's memory. */
export interface HistoryDevice {
  device: string;
  /** UUID, PCI address, or "host" */
  id: string;
  name: string | null;
  /** the latest one */
  limit_bytes: number | null;
  first_ms: number;
  last_ms: number;
  samples: number;
  peak_bytes: number;
  peak_at_ms: number;
  mean_bytes: number;
  last_bytes: number;
  /** highest peak first */
  processes: HistoryProcess[];
  more_processes: number;
  points: HistoryPoint[];
}

/** A change of a risk, as it was kept. */
export interface HistoryRisk {
  time_ms: number;
  device: string;
  id: string;
  before: string;
  risk_level: string;
  /** null where it cannot be read */
  assessment: RiskChange | null;
}

/** What monitors saw in the past. */
export interface History {
  file: string;
  since_ms: number | null;
  until_ms: number;
  devices: HistoryDevice[];
  /** the latest ones, in order of time */
  risk_changes: HistoryRisk[];
  earlier_risk_changes: number;
}

/** A driver that is there, working or not. */
export interface ListedDriver {
  vendor: string;
  /** null: it does not work */
  version: string | null;
  /** why not, and what to do */
  problem: string | null;
}

/** A process on a device. */
export interface ListedProcess {
  pid: number;
  bytes: number | null;
  kind: "process" | "ended" | "another_container";
  name: string | null;
}

/** A GPU, or a part of one. */
export interface ListedDevice {
  vendor: string;
  /** as the driver numbers them */
  index: number;
  /** of a MIG instance: the GPU's index */
  instance_of: number | null;
  name: string;
  uuid: string | null;
  bus_id: string | null;
  mig_enabled: boolean | null;
  /** to programs with this environment */
  visible_to_cuda: boolean;
  /** that such a program gives it */
  cuda_index: number | null;
  /** why there are no values */
  error: string | null;
  total_bytes: number | null;
  used_bytes: number | null;
  driver_reserved_bytes: number | null;
  utilization_percent: number | null;
  temperature_celsius: number | null;
  power_milliwatts: number | null;
  /** most bytes first; null: the driver does not say */
  processes: ListedProcess[] | null;
}

/** The control group. */
export interface ListedCgroup {
  /** 1 or 2 */
  version: number;
  folder: string;
  limit_bytes: number | null;
  usage_bytes: number | null;
  oom_kills: number | null;
}

/** The host's memory. */
export interface ListedHost {
  total_bytes: number | null;
  /** without swapping */
  available_bytes: number | null;
  /** null: there are no control groups */
  cgroup: ListedCgroup | null;
}

/** The GPUs of a machine, their memory and processes. */
export interface Devices {
  drivers: ListedDriver[];
  /** the variable of this process, as the next */
  cuda_visible_devices: string | null;
  cuda_device_order: string | null;
  visibility_problem: string | null;
  devices: ListedDevice[];
  host: ListedHost;
}

/** What was found about one thing. */
export interface DoctorCheck {
  name: string;
  status: "ok" | "warning" | "problem";
  text: string;
  /** what to do; null: nothing */
  advice: string | null;
}

/** What can be recorded on a machine. */
export interface Doctor {
  problems: boolean;
  checks: DoctorCheck[];
}

/** A GPU while the program trained. */
export interface TrainingDevice {
  memory_used_bytes: number | null;
  memory_free_bytes: number | null;
  memory_total_bytes: number | null;
  /** percent */
  memory_usage: number | null;
  memory_peak_bytes: number | null;
  /** of this process */
  process_memory_bytes: number | null;
  utilization: number | null;
  memory_usage_percent: AverageAndMaximum;
  utilization_percent: AverageAndMaximum;
  temperature_celsius: number | null;
  power_milliwatts: number | null;
  name: string | null;
  vendor: string | null;
  uuid: string | null;
  bus_id: string | null;
  /** why nothing more comes of it */
  lost: string | null;
}

/** Numbers that were logged. */
export interface ValueSummary {
  mean: number | null;
  max: number | null;
  min: number | null;
  std: number | null;
  p50: number | null;
  p90: number | null;
  p99: number | null;
  last: number | null;
  count: number;
  nan_count: number;
  infinite_count: number;
  /** for lack of memory */
  lost_count: number;
  /** null: not known */
  quantile_relative_error: number | null;
}

/** A share that was read again and again. */
export interface WatchedPercent {
  avg: number | null;
  max: number | null;
  latest: number | null;
}

/** Memory of this process on the host. */
export interface TrainingProcess {
  pid: number;
  rss_bytes: number | null;
  anon_bytes: number | null;
  shmem_bytes: number | null;
  swap_bytes: number | null;
  locked_bytes: number | null;
}

/** The disk. */
export interface TrainingDisk {
  /** on it */
  path: string;
  total_bytes: number | null;
  used_bytes: number | null;
  available_bytes: number | null;
}

/** What the machine received and sent since watching began. */
export interface TrainingNetwork {
  received_bytes: number | null;
  sent_bytes: number | null;
  received_bytes_per_second: number | null;
  sent_bytes_per_second: number | null;
}

/** The machine while the program trained. */
export interface TrainingSystem {
  /** percent, as the next two */
  cpu_usage: number | null;
  memory_usage: number | null;
  disk_usage: number | null;
  /** of all processors */
  cpu_percent: WatchedPercent;
  /** of one: 200 where this process keeps two busy */
  process_cpu_percent: WatchedPercent;
  /** that this process may use */
  processors: number | null;
  memory_percent: WatchedPercent;
  process: TrainingProcess;
  disk: TrainingDisk;
  network: TrainingNetwork;
  /** null: the machine was not watched */
  memory: WatchedHost | null;
}

/** Seconds of a part of training steps. */
export interface StepPart {
  mean: number | null;
  max: number | null;
  min: number | null;
  std: number | null;
  p50: number | null;
  p90: number | null;
  p99: number | null;
  last: number | null;
  count: number;
  nan_count: number;
  infinite_count: number;
  /** for lack of memory */
  lost_count: number;
  /** null: not known */
  quantile_relative_error: number | null;
  total_seconds: number | null;
  share_of_step_time: number | null;
}

/** Times of training steps. */
export interface StepSummary {
  /** that ended */
  steps: number;
  samples: number;
  steps_per_second: number | null;
  samples_per_second: number | null;
  step_seconds: ValueSummary;
  /** by part */
  breakdown: Record<string, StepPart>;
  /** in no part; null: nothing was measured, or parts overlap */
  unmeasured_seconds: number | null;
  /** that waited for data */
  stalled_steps: number | null;
  stalled_seconds: number | null;
  stalled_above_share: number;
}

/** How a program trained: metrics, steps, devices and the machine. */
export interface Performance {
  /** UTC */
  timestamp: string;
  started: string;
  duration_seconds: number;
  /** still */
  monitoring: boolean;
  /** by key */
  gpu_metrics: Record<string, TrainingDevice>;
  /** by name, in the order in which they were first logged */
  training_metrics: Record<string, ValueSummary>;
  system_metrics: TrainingSystem;
  steps: StepSummary;
  values_of_further_names: number;
  values_after_stop: number;
  problems: string[];
}

/** Memory of a phase. */
export interface PhaseMemory {
  /** allocated at its end */
  end_bytes: number;
  /** allocated at most during it */
  peak_bytes: number;
}

/** Peaks and phases of a configuration. */
export interface DpSgdConfiguration {
  /** as files name it */
  config: number;
  gpu: string;
  arguments: Record<string, string>;
  folder: string | null;
  result: Trial | null;
  per_sample_gradient_bytes: number | null;
  /** of the allocated peak */
  per_sample_gradient_share: number | null;
  phases: Record<string, PhaseMemory> | null;
  torch: string | null;
  opacus: string | null;
}

/** Peaks and phases of each configuration. */
export interface DpSgdResults {
  preset: "dp-sgd";
  model: string;
  program: string[];
  configurations: DpSgdConfiguration[];
}

/** What hung on the parameters of a configuration. */
export interface DpSgdDetails {
  /** as files name it */
  config: number;
  gpu: string;
  arguments: Record<string, string>;
  folder: string | null;
  /** bytes by kind and component, before the optimizer step where they were most */
  components: Record<string, Record<string, number>> | null;
  phases: Record<string, PhaseMemory> | null;
}

/** Phases of each configuration, and what hung on the parameters, by component. */
export interface DpSgdAllDetails {
  preset: "dp-sgd";
  model: string;
  program: string[];
  configurations: DpSgdDetails[];
}

/** The documents of commands, by their names. */
export interface Documents {
  "summary": Summary | JobSummary;
  "breakdown": Breakdown | { recordings: Breakdown[] };
  "table": Table | { recordings: Table[] };
  "tree": Tree | { recordings: Tree[] };
  "timeline": Timeline | { recordings: Timeline[] };
  "temporary": Temporary | { recordings: Temporary[] };
  "patterns": Patterns | { recordings: Patterns[] };
  "fragmentation": Fragmentation | { recordings: Fragmentation[] };
  "leaks": Leaks | { recordings: Leaks[] };
  "ledger": Ledger | { recordings: Ledger[] };
  "explain": Explanation | { recordings: Explanation[] };
  "compare": Comparison;
  "simulate": Simulation | { recordings: Simulation[] };
  "restart": RestartVerdict;
  "plan": Plan;
  "plan-fit": FitDocument;
  "plan-verify": Verification;
  "sweep": Sweep;
  "model": Model;
  "profile": ProfileReport;
  "oom": OomReport;
  "leak": LeakReport;
  "fragment": FragmentReport;
  "distributed": JobReport;
  "job-command": CommandReport;
  "history": History;
  "devices": Devices;
  "doctor": Doctor;
  "performance": Performance;
  "dp-sgd-results": DpSgdResults;
  "dp-sgd-details": DpSgdAllDetails;
}
