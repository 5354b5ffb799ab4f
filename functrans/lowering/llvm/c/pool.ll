; Generated from pool.c by clang 22: python -m functrans.lowering.llvm.c.generate

%struct.lock_type = type { [128 x i8] }
%struct.time = type { i64, i64 }

@table = internal constant [2 x ptr] [ptr @functrans.run_chunks, ptr @functrans.role], align 16
@has_key = internal global i32 0, align 4
@key = internal global i64 0, align 8
@stop = internal global i32 0, align 64
@busy = internal global i32 0, align 64
@workers = internal global i64 0, align 64
@job.0 = internal global ptr null, align 64
@job.1 = internal global ptr null, align 8
@job.2 = internal global i64 0, align 16
@job.3 = internal global i64 0, align 8
@next_chunk = internal global i64 0, align 64
@status = internal global i64 0, align 64
@open = internal global i32 0, align 64
@functrans.clock_monotonic = external constant i32, align 4
@owner = internal global i32 0, align 64
@mutex = internal global %struct.lock_type zeroinitializer, align 64
@work = internal global %struct.lock_type zeroinitializer, align 64
@done = internal global %struct.lock_type zeroinitializer, align 64
@sleepers = internal global i64 0, align 64
@inside = internal global i64 0, align 64
@waiting = internal global i32 0, align 64
@functrans.sig_setmask = external constant i32, align 4
@generation = internal global i64 0, align 64

define ptr @functrans.pool() {
entry:
  ret ptr @table
}

define i64 @functrans.role() {
entry:
  %0 = load atomic i32, ptr @has_key acquire, align 4
  %tobool.not = icmp eq i32 %0, 0
  br i1 %tobool.not, label %return, label %lor.lhs.false

lor.lhs.false:
  %1 = load i64, ptr @key, align 8
  %call = call ptr @pthread_getspecific(i64 %1)
  %tobool1.not = icmp eq ptr %call, null
  br i1 %tobool1.not, label %return, label %if.end

if.end:
  %2 = load atomic i32, ptr @stop monotonic, align 64
  %tobool3.not = icmp eq i32 %2, 0
  %cond = select i1 %tobool3.not, i64 1, i64 2
  br label %return

return:
  %retval.0 = phi i64 [ %cond, %if.end ], [ 0, %lor.lhs.false ], [ 0, %entry ]
  ret i64 %retval.0
}

declare ptr @pthread_getspecific(i64)

define i64 @functrans.run_chunks(ptr %function, ptr %frame, i64 %chunks, i64 %team, i1 %probe, ptr %poll, ptr %get, ptr %set) {
entry:
  %time.i64 = alloca %struct.time, align 8
  %time.i = alloca %struct.time, align 8
  %last = alloca i64, align 8
  store i64 0, ptr %last, align 8
  %cmp = icmp sgt i64 %chunks, 1
  %cmp1 = icmp sgt i64 %team, 1
  %0 = and i1 %cmp, %cmp1
  %or.cond = and i1 %probe, %0
  br i1 %or.cond, label %if.then, label %if.end12

if.then:
  %1 = load i32, ptr @functrans.clock_monotonic, align 4
  %call.i = call i32 @clock_gettime(i32 %1, ptr %time.i)
  %2 = load i64, ptr %time.i, align 8
  %nanoseconds.i = getelementptr inbounds nuw i8, ptr %time.i, i64 8
  %3 = load i64, ptr %nanoseconds.i, align 8
  %call4 = call i64 %function(ptr %frame, i64 0, i64 0)
  %call.i65 = call i32 @clock_gettime(i32 %1, ptr %time.i64)
  %4 = load i64, ptr %time.i64, align 8
  %nanoseconds.i67 = getelementptr inbounds nuw i8, ptr %time.i64, i64 8
  %5 = load i64, ptr %nanoseconds.i67, align 8
  %cmp6 = icmp sgt i64 %call4, -1
  br i1 %cmp6, label %if.end, label %cleanup40

if.end:
  %reass.add = sub i64 %4, %2
  %reass.mul = mul i64 %reass.add, 1000000000
  %add.i68 = sub i64 %5, %3
  %sub = add i64 %add.i68, %reass.mul
  %sub8 = add nsw i64 %chunks, -1
  %div = udiv i64 39999, %sub8
  %cmp9 = icmp sgt i64 %sub, %div
  br label %if.end12

if.end12:
  %together.1 = phi i1 [ %cmp9, %if.end ], [ %0, %entry ]
  %before.0 = phi i64 [ %call4, %if.end ], [ 0, %entry ]
  %first.1 = phi i64 [ 1, %if.end ], [ 0, %entry ]
  br i1 %together.1, label %lor.lhs.false, label %if.then18

lor.lhs.false:
  %call.i69 = call i32 @getpid()
  %6 = load atomic i32, ptr @owner seq_cst, align 64
  %cmp.i = icmp eq i32 %6, %call.i69
  br i1 %cmp.i, label %lor.lhs.false15, label %if.end.i

if.end.i:
  %cmp1.i = icmp eq i32 %6, -1
  br i1 %cmp1.i, label %if.then18, label %lor.lhs.false.i

lor.lhs.false.i:
  %7 = cmpxchg ptr @owner, i32 %6, i32 -1 seq_cst seq_cst, align 64
  %8 = extractvalue { i32, i1 } %7, 1
  %9 = extractvalue { i32, i1 } %7, 0
  br i1 %8, label %if.end3.i, label %if.then18

if.end3.i:
  %call4.i = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %call5.i = call i32 @pthread_cond_init(ptr @work, ptr null)
  %call6.i = call i32 @pthread_cond_init(ptr @done, ptr null)
  %10 = load atomic i32, ptr @has_key acquire, align 4
  %tobool.not.i = icmp eq i32 %10, 0
  br i1 %tobool.not.i, label %if.then8.i, label %if.end15.i

if.then8.i:
  %call9.i = call i32 @pthread_key_create(ptr @key, ptr null)
  %tobool10.not.i = icmp eq i32 %call9.i, 0
  br i1 %tobool10.not.i, label %if.end13.i, label %if.then11.i

if.then11.i:
  store atomic i32 %9, ptr @owner seq_cst, align 64
  br label %if.then18

if.end13.i:
  store atomic i32 1, ptr @has_key release, align 4
  br label %if.end15.i

if.end15.i:
  store i64 0, ptr @workers, align 64
  store atomic i64 0, ptr @sleepers seq_cst, align 64
  store atomic i64 0, ptr @inside seq_cst, align 64
  store atomic i32 0, ptr @open seq_cst, align 64
  store atomic i32 0, ptr @waiting seq_cst, align 64
  store atomic i32 0, ptr @stop seq_cst, align 64
  store atomic i32 0, ptr @busy seq_cst, align 64
  store atomic i32 %call.i69, ptr @owner seq_cst, align 64
  br label %lor.lhs.false15

lor.lhs.false15:
  %11 = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst, align 64
  %12 = extractvalue { i32, i1 } %11, 1
  br i1 %12, label %if.end20, label %if.then18

if.then18:
  %call19 = call fastcc i64 @alone(ptr %function, ptr %frame, i64 %first.1, i64 %chunks, i64 %before.0, ptr %poll, ptr %last)
  br label %cleanup40

if.end20:
  %tobool.not = icmp eq ptr %set, null
  br i1 %tobool.not, label %if.end23, label %if.then21

if.then21:
  %call22 = call i32 %get()
  call void %set(i32 1)
  br label %if.end23

if.end23:
  %blas.0 = phi i32 [ %call22, %if.then21 ], [ 0, %if.end20 ]
  %13 = load i64, ptr @workers, align 64
  %sub24 = add nsw i64 %team, -1
  %cmp25 = icmp slt i64 %13, %sub24
  br i1 %cmp25, label %if.then26, label %if.end28

if.then26:
  call fastcc void @hire(i64 %sub24)
  br label %if.end28

if.end28:
  store ptr %function, ptr @job.0, align 64
  store ptr %frame, ptr @job.1, align 8
  store i64 %chunks, ptr @job.2, align 16
  store i64 %team, ptr @job.3, align 8
  store atomic i64 %first.1, ptr @next_chunk monotonic, align 64
  store atomic i64 %before.0, ptr @status monotonic, align 64
  store atomic i32 0, ptr @stop monotonic, align 64
  store atomic i32 1, ptr @open seq_cst, align 64
  %14 = atomicrmw add ptr @generation, i64 1 seq_cst, align 64
  %15 = load atomic i64, ptr @sleepers seq_cst, align 64
  %tobool.not.i70 = icmp eq i64 %15, 0
  br i1 %tobool.not.i70, label %announce.exit, label %if.end.i71

if.end.i71:
  %call.i72 = call i32 @pthread_mutex_lock(ptr @mutex)
  %call3.i = call i32 @pthread_cond_broadcast(ptr @work)
  %call4.i73 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %announce.exit

announce.exit:
  call fastcc void @take(i64 0, ptr %poll, ptr %last)
  store atomic i32 0, ptr @open seq_cst, align 64
  call fastcc void @await_workers(ptr %poll, ptr %last)
  br i1 %tobool.not, label %if.end35, label %if.then34

if.then34:
  call void %set(i32 %blas.0)
  br label %if.end35

if.end35:
  %16 = load atomic i64, ptr @status monotonic, align 64
  store atomic i32 0, ptr @busy seq_cst, align 64
  br label %cleanup40

cleanup40:
  %retval.2 = phi i64 [ %call19, %if.then18 ], [ %call4, %if.then ], [ %16, %if.end35 ]
  ret i64 %retval.2
}

define internal fastcc i64 @alone(ptr %function, ptr %frame, i64 %first, i64 %chunks, i64 %total, ptr %poll, ptr %last) {
entry:
  br label %do.body

do.body:
  %total.addr.0 = phi i64 [ %total, %entry ], [ %spec.select, %do.body ]
  %chunk.0 = phi i64 [ %first, %entry ], [ %inc, %do.body ]
  %call = call i64 %function(ptr %frame, i64 %chunk.0, i64 0)
  %cmp.i = icmp sgt i64 %total.addr.0, 4611686018427387903
  %cmp1.i = icmp sgt i64 %call, 4611686018427387903
  %or.i = select i1 %cmp1.i, i64 0, i64 %total.addr.0
  %cond.i = or i64 %or.i, %call
  %retval.0.i = select i1 %cmp.i, i64 %total.addr.0, i64 %cond.i
  %call2 = call i1 %poll(ptr %last)
  %or = or i64 %retval.0.i, -9223372036854775808
  %spec.select = select i1 %call2, i64 %or, i64 %retval.0.i
  %cmp = icmp sgt i64 %spec.select, -1
  %inc = add nuw nsw i64 %chunk.0, 1
  %cmp3 = icmp slt i64 %inc, %chunks
  %or.cond = select i1 %cmp, i1 %cmp3, i1 false
  br i1 %or.cond, label %do.body, label %do.end

do.end:
  ret i64 %spec.select
}

define internal fastcc void @hire(i64 %wanted) {
entry:
  %all = alloca %struct.lock_type, align 64
  %old = alloca %struct.lock_type, align 64
  %thread = alloca i64, align 8
  %call = call i32 @sigfillset(ptr %all)
  %0 = load i32, ptr @functrans.sig_setmask, align 4
  %call1 = call i32 @pthread_sigmask(i32 %0, ptr %all, ptr %old)
  %.old = load i64, ptr @workers, align 64
  %cmp.old = icmp slt i64 %.old, %wanted
  br i1 %cmp.old, label %while.body, label %while.end

while.body:
  %1 = load i64, ptr @workers, align 64
  %add = add nsw i64 %1, 1
  %2 = inttoptr i64 %add to ptr
  %call2 = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %2)
  %tobool.not = icmp eq i32 %call2, 0
  br i1 %tobool.not, label %if.end, label %cleanup

if.end:
  %3 = load i64, ptr %thread, align 8
  %call3 = call i32 @pthread_detach(i64 %3)
  %4 = load i64, ptr @workers, align 64
  %inc = add nsw i64 %4, 1
  store i64 %inc, ptr @workers, align 64
  br label %cleanup

cleanup:
  %5 = load i64, ptr @workers, align 64
  %cmp = icmp slt i64 %5, %wanted
  %or.cond = select i1 %tobool.not, i1 %cmp, i1 false
  br i1 %or.cond, label %while.body, label %while.end

while.end:
  %call4 = call i32 @pthread_sigmask(i32 %0, ptr %old, ptr null)
  ret void
}

define internal fastcc void @take(i64 %worker, ptr %poll, ptr %last) {
entry:
  %0 = load ptr, ptr @job.0, align 64
  %1 = load ptr, ptr @job.1, align 8
  %2 = load i64, ptr @job.2, align 16
  %tobool11.not = icmp eq ptr %poll, null
  br label %for.cond

for.cond:
  %3 = atomicrmw add ptr @next_chunk, i64 1 monotonic, align 64
  %cmp.not = icmp slt i64 %3, %2
  br i1 %cmp.not, label %lor.lhs.false, label %cleanup18

lor.lhs.false:
  %4 = load atomic i32, ptr @stop monotonic, align 64
  %tobool.not = icmp eq i32 %4, 0
  br i1 %tobool.not, label %if.end, label %cleanup18

if.end:
  %call = call i64 %0(ptr %1, i64 %3, i64 %worker)
  %tobool2.not = icmp eq i64 %call, 0
  br i1 %tobool2.not, label %if.end10, label %if.then3

if.then3:
  %5 = load atomic i64, ptr @status monotonic, align 64
  %cmp1.i = icmp sgt i64 %call, 4611686018427387903
  br label %while.cond

while.cond:
  %seen.0 = phi i64 [ %5, %if.then3 ], [ %8, %while.cond ]
  %cmp.i = icmp sgt i64 %seen.0, 4611686018427387903
  %or.i = select i1 %cmp1.i, i64 0, i64 %seen.0
  %cond.i = or i64 %or.i, %call
  %retval.0.i = select i1 %cmp.i, i64 %seen.0, i64 %cond.i
  %6 = cmpxchg ptr @status, i64 %seen.0, i64 %retval.0.i monotonic monotonic, align 64
  %7 = extractvalue { i64, i1 } %6, 1
  %8 = extractvalue { i64, i1 } %6, 0
  br i1 %7, label %while.end, label %while.cond

while.end:
  %cmp7 = icmp slt i64 %call, 0
  %brmerge = or i1 %cmp7, %tobool11.not
  %..mux = select i1 %cmp7, i32 2, i32 0
  br i1 %brmerge, label %cleanup18, label %land.lhs.true

if.end10:
  br i1 %tobool11.not, label %cleanup18, label %land.lhs.true

land.lhs.true:
  %call12 = call i1 %poll(ptr %last)
  br i1 %call12, label %if.then13, label %cleanup18

if.then13:
  %9 = atomicrmw or ptr @status, i64 -9223372036854775808 monotonic, align 64
  br label %cleanup18

cleanup18:
  %cleanup.dest.slot.2 = phi i32 [ 1, %for.cond ], [ 1, %lor.lhs.false ], [ 2, %if.then13 ], [ %..mux, %while.end ], [ 0, %land.lhs.true ], [ 0, %if.end10 ]
  switch i32 %cleanup.dest.slot.2, label %cleanup22 [
    i32 0, label %for.cond
    i32 2, label %for.end
  ]

for.end:
  store atomic i32 1, ptr @stop monotonic, align 64
  br label %cleanup22

cleanup22:
  ret void
}

define internal fastcc void @await_workers(ptr %poll, ptr %last) {
entry:
  %time.i10.i = alloca %struct.time, align 8
  %time.i.i = alloca %struct.time, align 8
  %time = alloca %struct.time, align 8
  %0 = load i32, ptr @functrans.clock_monotonic, align 4
  %call.i.i = call i32 @clock_gettime(i32 %0, ptr %time.i.i)
  %1 = load i64, ptr %time.i.i, align 8
  %mul.i.i = mul nsw i64 %1, 1000000000
  %nanoseconds.i.i = getelementptr inbounds nuw i8, ptr %time.i.i, i64 8
  %2 = load i64, ptr %nanoseconds.i.i, align 8
  %add.i.i = add i64 %2, 25000
  %add.i = add i64 %add.i.i, %mul.i.i
  %nanoseconds.i13.i = getelementptr inbounds nuw i8, ptr %time.i10.i, i64 8
  br label %for.body.i

for.body.i:
  %turn.018.i = phi i64 [ 0, %entry ], [ %turn.018.i.be, %for.body.i.backedge ]
  %3 = load atomic i64, ptr @inside seq_cst, align 64
  %.not = icmp eq i64 %3, 0
  br i1 %.not, label %return, label %if.end.i

if.end.i:
  call void @functrans.spinning()
  %inc.i = add nuw nsw i64 %turn.018.i, 1
  %exitcond.not.i = icmp eq i64 %inc.i, 16
  br i1 %exitcond.not.i, label %do.cond.i, label %for.body.i.backedge

for.body.i.backedge:
  %turn.018.i.be = phi i64 [ %inc.i, %if.end.i ], [ 0, %do.cond.i ]
  br label %for.body.i

do.cond.i:
  %call.i11.i = call i32 @clock_gettime(i32 %0, ptr %time.i10.i)
  %4 = load i64, ptr %time.i10.i, align 8
  %mul.i12.i = mul nsw i64 %4, 1000000000
  %5 = load i64, ptr %nanoseconds.i13.i, align 8
  %add.i14.i = add nsw i64 %mul.i12.i, %5
  %cmp6.i = icmp slt i64 %add.i14.i, %add.i
  br i1 %cmp6.i, label %for.body.i.backedge, label %for.cond.preheader

for.cond.preheader:
  %nanoseconds = getelementptr inbounds nuw i8, ptr %time, i64 8
  br label %for.cond

for.cond:
  %call1 = call i32 @pthread_mutex_lock(ptr @mutex)
  store atomic i32 1, ptr @waiting seq_cst, align 64
  %6 = load atomic i64, ptr @inside seq_cst, align 64
  %tobool.not = icmp eq i64 %6, 0
  br i1 %tobool.not, label %if.end9, label %if.then2

if.then2:
  %call3 = call i32 @clock_gettime(i32 0, ptr %time)
  %7 = load i64, ptr %nanoseconds, align 8
  %add = add nsw i64 %7, 20000000
  store i64 %add, ptr %nanoseconds, align 8
  %cmp = icmp sgt i64 %7, 979999999
  br i1 %cmp, label %if.then5, label %if.end7

if.then5:
  %8 = load i64, ptr %time, align 8
  %inc = add nsw i64 %8, 1
  store i64 %inc, ptr %time, align 8
  %sub = add nsw i64 %7, -980000000
  store i64 %sub, ptr %nanoseconds, align 8
  br label %if.end7

if.end7:
  %call8 = call i32 @pthread_cond_timedwait(ptr @done, ptr @mutex, ptr %time)
  br label %if.end9

if.end9:
  store atomic i32 0, ptr @waiting seq_cst, align 64
  %call11 = call i32 @pthread_mutex_unlock(ptr @mutex)
  %9 = load atomic i64, ptr @inside seq_cst, align 64
  %tobool13.not = icmp eq i64 %9, 0
  br i1 %tobool13.not, label %return, label %if.end15

if.end15:
  %10 = load atomic i32, ptr @stop monotonic, align 64
  %tobool17.not = icmp eq i32 %10, 0
  br i1 %tobool17.not, label %land.lhs.true, label %for.cond.backedge

land.lhs.true:
  %call18 = call i1 %poll(ptr %last)
  br i1 %call18, label %if.then19, label %for.cond.backedge

if.then19:
  %11 = atomicrmw or ptr @status, i64 -9223372036854775808 monotonic, align 64
  store atomic i32 1, ptr @stop monotonic, align 64
  br label %for.cond.backedge

for.cond.backedge:
  br label %for.cond

return:
  ret void
}

declare i32 @clock_gettime(i32, ptr)

declare i32 @getpid()

declare i32 @pthread_mutex_init(ptr, ptr)

declare i32 @pthread_cond_init(ptr, ptr)

declare i32 @pthread_key_create(ptr, ptr)

declare i32 @sigfillset(ptr)

declare i32 @pthread_sigmask(i32, ptr, ptr)

declare i32 @pthread_create(ptr, ptr, ptr, ptr)

define internal ptr @worker(ptr %argument) {
entry:
  %time.i10.i.i = alloca %struct.time, align 8
  %time.i.i.i = alloca %struct.time, align 8
  %0 = ptrtoint ptr %argument to i64
  %1 = load i64, ptr @key, align 8
  %call = call i32 @pthread_setspecific(i64 %1, ptr %argument)
  %2 = load i32, ptr @functrans.clock_monotonic, align 4
  %nanoseconds.i.i.i = getelementptr inbounds nuw i8, ptr %time.i.i.i, i64 8
  %nanoseconds.i13.i.i = getelementptr inbounds nuw i8, ptr %time.i10.i.i, i64 8
  br label %for.cond

for.cond:
  %3 = load atomic i64, ptr @generation seq_cst, align 64
  %4 = atomicrmw add ptr @inside, i64 1 seq_cst, align 64
  %5 = load atomic i32, ptr @open seq_cst, align 64
  %tobool.not = icmp ne i32 %5, 0
  %6 = load i64, ptr @job.3, align 8
  %cmp = icmp sgt i64 %6, %0
  %or.cond = select i1 %tobool.not, i1 %cmp, i1 false
  br i1 %or.cond, label %if.then, label %if.end

if.then:
  call fastcc void @take(i64 %0, ptr null, ptr null)
  br label %if.end

if.end:
  %7 = atomicrmw sub ptr @inside, i64 1 seq_cst, align 64
  %cmp.not.i = icmp eq i64 %7, 1
  br i1 %cmp.not.i, label %if.end.i, label %leave.exit

if.end.i:
  %8 = load atomic i32, ptr @waiting seq_cst, align 64
  %tobool.not.i = icmp eq i32 %8, 0
  br i1 %tobool.not.i, label %leave.exit, label %if.end3.i

if.end3.i:
  %call.i = call i32 @pthread_mutex_lock(ptr @mutex)
  %call4.i = call i32 @pthread_cond_signal(ptr @done)
  %call5.i = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %leave.exit

leave.exit:
  %call.i.i.i = call i32 @clock_gettime(i32 %2, ptr %time.i.i.i)
  %9 = load i64, ptr %time.i.i.i, align 8
  %mul.i.i.i = mul nsw i64 %9, 1000000000
  %10 = load i64, ptr %nanoseconds.i.i.i, align 8
  %add.i.i.i = add i64 %10, 25000
  %add.i.i = add i64 %add.i.i.i, %mul.i.i.i
  br label %for.body.i.i

for.body.i.i:
  %turn.018.i.i = phi i64 [ 0, %leave.exit ], [ %turn.018.i.i.be, %for.body.i.i.backedge ]
  %11 = load atomic i64, ptr @generation seq_cst, align 64
  %.not.i = icmp eq i64 %11, %3
  br i1 %.not.i, label %if.end.i.i, label %for.cond.backedge

if.end.i.i:
  call void @functrans.spinning()
  %inc.i.i = add nuw nsw i64 %turn.018.i.i, 1
  %exitcond.not.i.i = icmp eq i64 %inc.i.i, 16
  br i1 %exitcond.not.i.i, label %do.cond.i.i, label %for.body.i.i.backedge

for.body.i.i.backedge:
  %turn.018.i.i.be = phi i64 [ %inc.i.i, %if.end.i.i ], [ 0, %do.cond.i.i ]
  br label %for.body.i.i

do.cond.i.i:
  %call.i11.i.i = call i32 @clock_gettime(i32 %2, ptr %time.i10.i.i)
  %12 = load i64, ptr %time.i10.i.i, align 8
  %mul.i12.i.i = mul nsw i64 %12, 1000000000
  %13 = load i64, ptr %nanoseconds.i13.i.i, align 8
  %add.i14.i.i = add nsw i64 %mul.i12.i.i, %13
  %cmp6.i.i = icmp slt i64 %add.i14.i.i, %add.i.i
  br i1 %cmp6.i.i, label %for.body.i.i.backedge, label %if.end.i5

if.end.i5:
  %call1.i = call i32 @pthread_mutex_lock(ptr @mutex)
  %14 = atomicrmw add ptr @sleepers, i64 1 seq_cst, align 64
  %15 = load atomic i64, ptr @generation seq_cst, align 64
  %cmp8.i = icmp eq i64 %15, %3
  br i1 %cmp8.i, label %while.body.i, label %while.end.i

while.body.i:
  %call3.i = call i32 @pthread_cond_wait(ptr @work, ptr @mutex)
  %16 = load atomic i64, ptr @generation seq_cst, align 64
  %cmp.i = icmp eq i64 %16, %3
  br i1 %cmp.i, label %while.body.i, label %while.end.i

while.end.i:
  %17 = atomicrmw sub ptr @sleepers, i64 1 seq_cst, align 64
  %call6.i = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %for.cond.backedge

for.cond.backedge:
  br label %for.cond
}

declare i32 @pthread_detach(i64)

declare i32 @pthread_setspecific(i64, ptr)

declare i32 @pthread_mutex_lock(ptr)

declare i32 @pthread_cond_signal(ptr)

declare i32 @pthread_mutex_unlock(ptr)

declare i32 @pthread_cond_wait(ptr, ptr)

declare void @functrans.spinning()

declare i32 @pthread_cond_broadcast(ptr)

declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
