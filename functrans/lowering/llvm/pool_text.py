"""The LLVM text of the pool of threads; what stands in braces is filled in by `pool`."""

from __future__ import annotations

#: How kernels find the two functions, and what all systems have.
ALWAYS = """@table = internal constant [2 x i64] [i64 ptrtoint (ptr @{run} to i64), i64 ptrtoint (ptr @{role} to i64)]

define ptr @functrans.pool() {{
  ret ptr @table
}}

; A status of memory damage holds a number: the first stays. Others hold bits.
define internal i64 @merged(i64 %old, i64 %new) {{
  %old.bad = icmp sge i64 %old, {overwritten}
  %new.bad = icmp sge i64 %new, {overwritten}
  %both = or i64 %old, %new
  %second = select i1 %new.bad, i64 %new, i64 %both
  %result = select i1 %old.bad, i64 %old, i64 %second
  ret i64 %result
}}

; The chunks from a number on in this thread; some have the status `%before`.
define internal i64 @alone(ptr %function, ptr %frame, i64 %first, i64 %chunks, i64 %before, ptr %poll, ptr %last) {{
entry:
  br label %next
next:
  %chunk = phi i64 [ %first, %entry ], [ %chunk.next, %more ]
  %total = phi i64 [ %before, %entry ], [ %sum, %more ]
  %one = call i64 %function(ptr %frame, i64 %chunk, i64 0)
  %joint = call i64 @merged(i64 %total, i64 %one)
  %raised = call i1 %poll(ptr %last)
  %pending = select i1 %raised, i64 -9223372036854775808, i64 0
  %sum = or i64 %joint, %pending
  %negative = icmp slt i64 %sum, 0
  br i1 %negative, label %end, label %more
more:
  %chunk.next = add i64 %chunk, 1
  %again = icmp slt i64 %chunk.next, %chunks
  br i1 %again, label %next, label %end
end:
  ret i64 %sum
}}

"""
#: Without POSIX threads.
SERIAL = """define internal i64 @{role}() {{
  ret i64 0
}}

define internal i64 @{run}(
  ptr %function, ptr %frame, i64 %chunks, i64 %team, i1 %probe, ptr %poll, ptr %get, ptr %set) {{
  %last = alloca i64
  store i64 0, ptr %last
  %status = call i64 @alone(ptr %function, ptr %frame, i64 0, i64 %chunks, i64 0, ptr %poll, ptr %last)
  ret i64 %status
}}
"""
#: With them; see `pool`.
POOL = """{declare_pause}
declare i32 @getpid()
declare i64 @pthread_self()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific({key})
declare i32 @pthread_setspecific({key}, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @clock_gettime(i32, ptr)

; Each on cache lines of its own: what threads write often, and what they only read.
@pid = internal global i32 0, align 64
@busy = internal global i32 0, align 64
@workers = internal global i64 0, align 64
@key = internal global i64 0
@has.key = internal global i32 0
@generation = internal global i64 0, align 64
@sleepers = internal global i64 0, align 64
@waiting = internal global i32 0, align 64
@open = internal global i32 0, align 64
@inside = internal global i64 0, align 64
@next = internal global i64 0, align 64
@status = internal global i64 0, align 64
@stop = internal global i32 0, align 64
@function = internal global ptr null, align 64
@frame = internal global ptr null
@chunks = internal global i64 0
@team = internal global i64 0
@mutex = internal global [128 x i8] zeroinitializer, align 64
@work = internal global [128 x i8] zeroinitializer, align 64
@done = internal global [128 x i8] zeroinitializer, align 64
define internal i64 @{role}() {{
  %known = load atomic i32, ptr @has.key acquire, align 4
  %none = icmp eq i32 %known, 0
  br i1 %none, label %master, label %ask
ask:
  %key = load {key}, ptr @key
  %mark = call ptr @pthread_getspecific({key} %key)
  %is.master = icmp eq ptr %mark, null
  br i1 %is.master, label %master, label %worker
worker:
  %stop = load atomic i32, ptr @stop monotonic, align 4
  %two = icmp ne i32 %stop, 0
  %answer = select i1 %two, i64 2, i64 1
  ret i64 %answer
master:
  ret i64 0
}}

; Take chunks until there is none. The caller's thread gives a function that asks Python for signals.
define internal void @take(i64 %worker, ptr %poll, ptr %last) {{
entry:
  %function = load ptr, ptr @function
  %frame = load ptr, ptr @frame
  %chunks = load i64, ptr @chunks
  br label %again
again:
  %chunk = atomicrmw add ptr @next, i64 1 monotonic
  %left = icmp slt i64 %chunk, %chunks
  br i1 %left, label %look, label %end
look:
  %stop = load atomic i32, ptr @stop monotonic, align 4
  %go = icmp eq i32 %stop, 0
  br i1 %go, label %call, label %end
call:
  %one = call i64 %function(ptr %frame, i64 %chunk, i64 %worker)
  %good = icmp eq i64 %one, 0
  br i1 %good, label %poll.maybe, label %bad
bad:
  %old = load atomic i64, ptr @status monotonic, align 8
  br label %merge
merge:
  %seen = phi i64 [ %old, %bad ], [ %now, %merge ]
  %new = call i64 @merged(i64 %seen, i64 %one)
  %pair = cmpxchg ptr @status, i64 %seen, i64 %new monotonic monotonic
  %now = extractvalue {{ i64, i1 }} %pair, 0
  %stored = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %stored, label %merged, label %merge
merged:
  %negative = icmp slt i64 %one, 0
  br i1 %negative, label %halt, label %poll.maybe
halt:
  store atomic i32 1, ptr @stop monotonic, align 4
  br label %end
poll.maybe:
  %helps = icmp eq ptr %poll, null
  br i1 %helps, label %again, label %poll.now
poll.now:
  %raised = call i1 %poll(ptr %last)
  br i1 %raised, label %pending, label %again
pending:
  %was = atomicrmw or ptr @status, i64 -9223372036854775808 monotonic
  br label %halt
end:
  ret void
}}

define internal ptr @worker(ptr %argument) {{
entry:
  %number = ptrtoint ptr %argument to i64
  %key = load {key}, ptr @key
  %ignored = call i32 @pthread_setspecific({key} %key, ptr %argument)
  br label %enter
enter:
  %seen.now = load atomic i64, ptr @generation seq_cst, align 8
  %before = atomicrmw add ptr @inside, i64 1 seq_cst
  %open = load atomic i32, ptr @open seq_cst, align 4
  %is.open = icmp ne i32 %open, 0
  br i1 %is.open, label %opened, label %leave
opened:
  %team = load i64, ptr @team
  %invited = icmp slt i64 %number, %team
  br i1 %invited, label %join, label %leave
join:
  call void @take(i64 %number, ptr null, ptr null)
  br label %leave
leave:
  %held = atomicrmw sub ptr @inside, i64 1 seq_cst
  %was.last = icmp eq i64 %held, 1
  br i1 %was.last, label %last, label %spin
last:
  %waiting = load atomic i32, ptr @waiting seq_cst, align 4
  %awaited = icmp ne i32 %waiting, 0
  br i1 %awaited, label %tell, label %spin
tell:
  %t1 = call i32 @pthread_mutex_lock(ptr @mutex)
  %t2 = call i32 @pthread_cond_signal(ptr @done)
  %t3 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %spin
spin:
  %turn = phi i64 [ 0, %leave ], [ 0, %last ], [ 0, %tell ], [ %turn.next, %spin.more ]
  %fresh = load atomic i64, ptr @generation seq_cst, align 8
  %changed = icmp ne i64 %fresh, %seen.now
  br i1 %changed, label %enter, label %spin.more
spin.more:
  {pause}
  %turn.next = add i64 %turn, 1
  %tired = icmp sge i64 %turn.next, {spins}
  br i1 %tired, label %sleep, label %spin
sleep:
  %s1 = call i32 @pthread_mutex_lock(ptr @mutex)
  %s2 = atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %test
test:
  %awake = load atomic i64, ptr @generation seq_cst, align 8
  %same = icmp eq i64 %awake, %seen.now
  br i1 %same, label %wait, label %woken
wait:
  %s3 = call i32 @pthread_cond_wait(ptr @work, ptr @mutex)
  br label %test
woken:
  %s4 = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  %s5 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %enter
}}

; Make the pool that of this process. Returns false if another thread does so.
define internal i1 @owned() {{
entry:
  %me = call i32 @getpid()
  %owner = load atomic i32, ptr @pid seq_cst, align 4
  %mine = icmp eq i32 %owner, %me
  br i1 %mine, label %yes, label %other
other:
  %starting = icmp eq i32 %owner, -1
  br i1 %starting, label %no, label %claim
claim:
  %pair = cmpxchg ptr @pid, i32 %owner, i32 -1 seq_cst seq_cst
  %won = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %won, label %reset, label %no
reset:
  %r1 = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %r2 = call i32 @pthread_cond_init(ptr @work, ptr null)
  %r3 = call i32 @pthread_cond_init(ptr @done, ptr null)
  %has = load atomic i32, ptr @has.key acquire, align 4
  %no.key = icmp eq i32 %has, 0
  br i1 %no.key, label %make.key, label %clear
make.key:
  %r4 = call i32 @pthread_key_create(ptr @key, ptr null)
  %failed = icmp ne i32 %r4, 0
  br i1 %failed, label %give.up, label %keep.key
give.up:
  store atomic i32 %owner, ptr @pid seq_cst, align 4
  br label %no
keep.key:
  store atomic i32 1, ptr @has.key release, align 4
  br label %clear
clear:
  store i64 0, ptr @workers
  store atomic i64 0, ptr @sleepers seq_cst, align 8
  store atomic i64 0, ptr @inside seq_cst, align 8
  store atomic i32 0, ptr @open seq_cst, align 4
  store atomic i32 0, ptr @waiting seq_cst, align 4
  store atomic i32 0, ptr @stop seq_cst, align 4
  store atomic i32 0, ptr @busy seq_cst, align 4
  store atomic i32 %me, ptr @pid seq_cst, align 4
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

; Start workers until there are so many, or the system refuses.
define internal void @hire(i64 %wanted) {{
entry:
  %thread = alloca i64
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %have = load i64, ptr @workers
  %few = icmp slt i64 %have, %wanted
  br i1 %few, label %block, label %end
block:
  %b1 = call i32 @sigfillset(ptr %all)
  %b2 = call i32 @pthread_sigmask(i32 {setmask}, ptr %all, ptr %old)
  br label %start
start:
  %n = phi i64 [ %have, %block ], [ %number, %started ]
  %number = add i64 %n, 1
  %argument = inttoptr i64 %number to ptr
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %good = icmp eq i32 %error, 0
  br i1 %good, label %started, label %unblock
started:
  %handle = load i64, ptr %thread
  %b3 = call i32 @pthread_detach(i64 %handle)
  store i64 %number, ptr @workers
  %more = icmp slt i64 %number, %wanted
  br i1 %more, label %start, label %unblock
unblock:
  %b4 = call i32 @pthread_sigmask(i32 {setmask}, ptr %old, ptr null)
  br label %end
end:
  ret void
}}

; Wait until no worker is inside, and look at the signals from time to time.
define internal void @await(ptr %poll, ptr %last) {{
entry:
  %time = alloca [2 x i64], align 16
  %nanos = getelementptr i64, ptr %time, i64 1
  br label %spin
spin:
  %turn = phi i64 [ 0, %entry ], [ %turn.next, %spin.more ]
  %in = load atomic i64, ptr @inside seq_cst, align 8
  %none = icmp eq i64 %in, 0
  br i1 %none, label %end, label %spin.more
spin.more:
  {pause}
  %turn.next = add i64 %turn, 1
  %tired = icmp sge i64 %turn.next, {spins}
  br i1 %tired, label %lock, label %spin
lock:
  %w1 = call i32 @pthread_mutex_lock(ptr @mutex)
  store atomic i32 1, ptr @waiting seq_cst, align 4
  %still = load atomic i64, ptr @inside seq_cst, align 8
  %over = icmp eq i64 %still, 0
  br i1 %over, label %unlock, label %wait
wait:
  %w2 = call i32 @clock_gettime(i32 0, ptr %time)
  %ns = load i64, ptr %nanos
  %later = add i64 %ns, {look}
  %carry = icmp sge i64 %later, 1000000000
  %less = sub i64 %later, 1000000000
  %rest = select i1 %carry, i64 %less, i64 %later
  %s = load i64, ptr %time
  %one = zext i1 %carry to i64
  %s.later = add i64 %s, %one
  store i64 %s.later, ptr %time
  store i64 %rest, ptr %nanos
  %w3 = call i32 @pthread_cond_timedwait(ptr @done, ptr @mutex, ptr %time)
  br label %unlock
unlock:
  store atomic i32 0, ptr @waiting seq_cst, align 4
  %w4 = call i32 @pthread_mutex_unlock(ptr @mutex)
  %remaining = load atomic i64, ptr @inside seq_cst, align 8
  %finished = icmp eq i64 %remaining, 0
  br i1 %finished, label %end, label %poll.maybe
poll.maybe:
  %stopped = load atomic i32, ptr @stop monotonic, align 4
  %ends = icmp ne i32 %stopped, 0
  br i1 %ends, label %lock, label %poll.now
poll.now:
  %raised = call i1 %poll(ptr %last)
  br i1 %raised, label %halt, label %lock
halt:
  %was = atomicrmw or ptr @status, i64 -9223372036854775808 monotonic
  store atomic i32 1, ptr @stop monotonic, align 4
  br label %lock
end:
  ret void
}}

; Nanoseconds.
define internal i64 @now() {{
  %time = alloca [2 x i64], align 16
  %e = call i32 @clock_gettime(i32 {monotonic}, ptr %time)
  %s = load i64, ptr %time
  %nanos = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %nanos
  %whole = mul i64 %s, 1000000000
  %sum = add i64 %whole, %ns
  ret i64 %sum
}}

; Run a job of some chunks, at least one, with a team of threads; returns the status. To probe is to measure the first
; chunk, and run the others alone if they will not take long. `%get` and `%set` are those of BLAS's threads, or null:
; while several threads call BLAS, it has no others.
define internal i64 @{run}(
  ptr %function, ptr %frame, i64 %chunks, i64 %team, i1 %probe, ptr %poll, ptr %get, ptr %set) {{
entry:
  %last = alloca i64
  store i64 0, ptr %last
  %several = icmp sgt i64 %chunks, 1
  %many = icmp sgt i64 %team, 1
  %together = and i1 %several, %many
  br i1 %together, label %measure.maybe, label %serial
measure.maybe:
  br i1 %probe, label %measure, label %own
measure:
  %begin = call i64 @now()
  %probed = call i64 %function(ptr %frame, i64 0, i64 0)
  %end = call i64 @now()
  %bad = icmp slt i64 %probed, 0
  br i1 %bad, label %give.up, label %compare
give.up:
  ret i64 %probed
compare:
  %spent = sub i64 %end, %begin
  %others = sub i64 %chunks, 1
  %expected = mul i64 %spent, %others
  %short = icmp slt i64 %expected, {short}
  br i1 %short, label %serial, label %own
own:
  %first = phi i64 [ 0, %measure.maybe ], [ 1, %compare ]
  %before = phi i64 [ 0, %measure.maybe ], [ %probed, %compare ]
  %owned = call i1 @owned()
  br i1 %owned, label %claim, label %busy
claim:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %free = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %free, label %start, label %busy
busy:
  br label %serial
serial:
  %from = phi i64 [ 0, %entry ], [ 1, %compare ], [ %first, %busy ]
  %known = phi i64 [ 0, %entry ], [ %probed, %compare ], [ %before, %busy ]
  %own.status = call i64 @alone(
    ptr %function, ptr %frame, i64 %from, i64 %chunks, i64 %known, ptr %poll, ptr %last)
  ret i64 %own.status
start:
  %no.blas = icmp eq ptr %set, null
  br i1 %no.blas, label %begin.job, label %limit
limit:
  %held = call i32 %get()
  call void %set(i32 1)
  br label %begin.job
begin.job:
  %blas = phi i32 [ 0, %start ], [ %held, %limit ]
  %helpers = sub i64 %team, 1
  call void @hire(i64 %helpers)
  store ptr %function, ptr @function
  store ptr %frame, ptr @frame
  store i64 %chunks, ptr @chunks
  store i64 %team, ptr @team
  store atomic i64 %first, ptr @next monotonic, align 8
  store atomic i64 %before, ptr @status monotonic, align 8
  store atomic i32 0, ptr @stop monotonic, align 4
  store atomic i32 1, ptr @open seq_cst, align 4
  %generation = atomicrmw add ptr @generation, i64 1 seq_cst
  %sleepers = load atomic i64, ptr @sleepers seq_cst, align 8
  %asleep = icmp sgt i64 %sleepers, 0
  br i1 %asleep, label %wake, label %work
wake:
  %k1 = call i32 @pthread_mutex_lock(ptr @mutex)
  %k2 = call i32 @pthread_cond_broadcast(ptr @work)
  %k3 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
work:
  call void @take(i64 0, ptr %poll, ptr %last)
  store atomic i32 0, ptr @open seq_cst, align 4
  call void @await(ptr %poll, ptr %last)
  br i1 %no.blas, label %done, label %restore
restore:
  call void %set(i32 %blas)
  br label %done
done:
  %status = load atomic i64, ptr @status seq_cst, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret i64 %status
}}
"""
