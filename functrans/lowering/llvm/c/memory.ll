; Generated from memory.c by clang 22: python -m functrans.lowering.llvm.c.generate

@table = internal constant [5 x ptr] [ptr @functrans.allocate, ptr @functrans.allocate_zeros, ptr @functrans.resize, ptr @functrans.release, ptr @functrans.forget], align 16

define ptr @functrans.memory() {
entry:
  ret ptr @table
}

define ptr @functrans.allocate(ptr %store, i64 %size) {
entry:
  %cmp = icmp ugt i64 %size, 9223372036854771696
  br i1 %cmp, label %return, label %if.end

if.end:
  %busy.i = getelementptr inbounds nuw i8, ptr %store, i64 72
  %0 = atomicrmw xchg ptr %busy.i, i64 1 acquire, align 8
  %tobool.not.i = icmp eq i64 %0, 0
  br i1 %tobool.not.i, label %if.then1, label %if.end8

if.then1:
  %count.i = getelementptr inbounds nuw i8, ptr %store, i64 56
  %1 = load i64, ptr %count.i, align 8
  %blocks.i = getelementptr inbounds nuw i8, ptr %store, i64 80
  %kept.i.i = getelementptr inbounds nuw i8, ptr %store, i64 48
  br label %for.cond.i

for.cond.i:
  %i.0.in.i = phi i64 [ %1, %if.then1 ], [ %i.0.i, %cleanup.i ]
  %retval.0.i = phi ptr [ undef, %if.then1 ], [ %retval.1.i, %cleanup.i ]
  %i.0.i = add nsw i64 %i.0.in.i, -1
  %cmp.i = icmp slt i64 %i.0.in.i, 1
  br i1 %cmp.i, label %found.exit, label %for.body.i

for.body.i:
  %arrayidx.i = getelementptr inbounds nuw ptr, ptr %blocks.i, i64 %i.0.i
  %2 = load ptr, ptr %arrayidx.i, align 8
  %size1.i = getelementptr inbounds i8, ptr %2, i64 -8
  %3 = load i64, ptr %size1.i, align 8
  %cmp2.not.i = icmp sgt i64 %size, %3
  br i1 %cmp2.not.i, label %cleanup.i, label %land.lhs.true.i

land.lhs.true.i:
  %sub3.i = sub nsw i64 %3, %size
  %div17.i = lshr i64 %3, 3
  %cmp4.not.i = icmp sgt i64 %sub3.i, %div17.i
  br i1 %cmp4.not.i, label %cleanup.i, label %if.then.i

if.then.i:
  %4 = load i64, ptr %count.i, align 8
  %dec.i.i = add nsw i64 %4, -1
  store i64 %dec.i.i, ptr %count.i, align 8
  %5 = load i64, ptr %kept.i.i, align 8
  %sub.i.i = sub nsw i64 %5, %3
  store i64 %sub.i.i, ptr %kept.i.i, align 8
  %cmp16.i.i = icmp slt i64 %i.0.in.i, %4
  br i1 %cmp16.i.i, label %for.body.i.i, label %cleanup.i

for.body.i.i:
  %i.addr.017.i.i = phi i64 [ %add.i.i, %for.body.i.i ], [ %i.0.i, %if.then.i ]
  %add.i.i = add nuw nsw i64 %i.addr.017.i.i, 1
  %arrayidx3.i.i = getelementptr inbounds nuw ptr, ptr %blocks.i, i64 %add.i.i
  %6 = load ptr, ptr %arrayidx3.i.i, align 8
  %arrayidx5.i.i = getelementptr inbounds nuw ptr, ptr %blocks.i, i64 %i.addr.017.i.i
  store ptr %6, ptr %arrayidx5.i.i, align 8
  %exitcond.not.i.i = icmp eq i64 %add.i.i, %dec.i.i
  br i1 %exitcond.not.i.i, label %cleanup.i, label %for.body.i.i

cleanup.i:
  %cond.i = phi i1 [ true, %for.body.i ], [ true, %land.lhs.true.i ], [ false, %if.then.i ], [ false, %for.body.i.i ]
  %retval.1.i = phi ptr [ %retval.0.i, %for.body.i ], [ %retval.0.i, %land.lhs.true.i ], [ %2, %if.then.i ], [ %2, %for.body.i.i ]
  br i1 %cond.i, label %for.cond.i, label %found.exit

found.exit:
  %spec.select.i = phi ptr [ %retval.1.i, %cleanup.i ], [ null, %for.cond.i ]
  %tobool.not.not = icmp eq ptr %spec.select.i, null
  br i1 %tobool.not.not, label %if.end8.critedge, label %if.then3

if.then3:
  %reused = getelementptr inbounds nuw i8, ptr %store, i64 64
  %7 = load i64, ptr %reused, align 8
  %inc = add nsw i64 %7, 1
  store i64 %inc, ptr %reused, align 8
  store atomic i64 0, ptr %busy.i release, align 8
  br label %return

if.end8.critedge:
  store atomic i64 0, ptr %busy.i release, align 8
  br label %if.end8

if.end8:
  %allocate = getelementptr inbounds nuw i8, ptr %store, i64 8
  %8 = load ptr, ptr %allocate, align 8
  %9 = load ptr, ptr %store, align 8
  %add = add nuw nsw i64 %size, 4111
  %call10 = call ptr %8(ptr %9, i64 %add)
  %tobool11.not = icmp eq ptr %call10, null
  br i1 %tobool11.not, label %land.lhs.true, label %if.end20

land.lhs.true:
  %count = getelementptr inbounds nuw i8, ptr %store, i64 56
  %10 = load i64, ptr %count, align 8
  %tobool12.not = icmp eq i64 %10, 0
  br i1 %tobool12.not, label %if.end20, label %if.then13

if.then13:
  %11 = atomicrmw xchg ptr %busy.i, i64 1 acquire, align 8
  %tobool.not.i.i = icmp eq i64 %11, 0
  br i1 %tobool.not.i.i, label %while.cond.preheader.i, label %functrans.forget.exit

while.cond.preheader.i:
  %12 = load i64, ptr %count, align 8
  %tobool.not8.i = icmp eq i64 %12, 0
  br i1 %tobool.not8.i, label %while.end.i, label %while.body.lr.ph.i

while.body.lr.ph.i:
  %blocks.i.i = getelementptr inbounds nuw i8, ptr %store, i64 80
  %kept.i.i54 = getelementptr inbounds nuw i8, ptr %store, i64 48
  %release.i.i = getelementptr inbounds nuw i8, ptr %store, i64 32
  br label %while.body.i

while.body.i:
  %13 = phi i64 [ %12, %while.body.lr.ph.i ], [ %20, %taken.exit.i ]
  %14 = load ptr, ptr %blocks.i.i, align 8
  %dec.i.i55 = add nsw i64 %13, -1
  store i64 %dec.i.i55, ptr %count, align 8
  %size.i.i56 = getelementptr inbounds i8, ptr %14, i64 -8
  %15 = load i64, ptr %size.i.i56, align 8
  %16 = load i64, ptr %kept.i.i54, align 8
  %sub.i.i57 = sub nsw i64 %16, %15
  store i64 %sub.i.i57, ptr %kept.i.i54, align 8
  %cmp16.i.i58 = icmp sgt i64 %13, 1
  br i1 %cmp16.i.i58, label %for.body.i.i60, label %taken.exit.i

for.body.i.i60:
  %i.addr.017.i.i61 = phi i64 [ %add.i.i62, %for.body.i.i60 ], [ 0, %while.body.i ]
  %add.i.i62 = add nuw nsw i64 %i.addr.017.i.i61, 1
  %arrayidx3.i.i63 = getelementptr inbounds nuw ptr, ptr %blocks.i.i, i64 %add.i.i62
  %17 = load ptr, ptr %arrayidx3.i.i63, align 8
  %arrayidx5.i.i64 = getelementptr inbounds nuw ptr, ptr %blocks.i.i, i64 %i.addr.017.i.i61
  store ptr %17, ptr %arrayidx5.i.i64, align 8
  %exitcond.not.i.i65 = icmp eq i64 %add.i.i62, %dec.i.i55
  br i1 %exitcond.not.i.i65, label %taken.exit.i, label %for.body.i.i60

taken.exit.i:
  %add.ptr.i.i.i = getelementptr inbounds i8, ptr %14, i64 -16
  %block.sroa.0.0.copyload.i.i = load ptr, ptr %add.ptr.i.i.i, align 8
  %block.sroa.4.0.copyload.i.i = load i64, ptr %size.i.i56, align 8
  %18 = load ptr, ptr %release.i.i, align 8
  %19 = load ptr, ptr %store, align 8
  %add.i6.i = add nsw i64 %block.sroa.4.0.copyload.i.i, 4111
  call void %18(ptr %19, ptr %block.sroa.0.0.copyload.i.i, i64 %add.i6.i)
  %20 = load i64, ptr %count, align 8
  %tobool.not.i59 = icmp eq i64 %20, 0
  br i1 %tobool.not.i59, label %while.end.i, label %while.body.i

while.end.i:
  store atomic i64 0, ptr %busy.i release, align 8
  br label %functrans.forget.exit

functrans.forget.exit:
  %21 = load ptr, ptr %allocate, align 8
  %22 = load ptr, ptr %store, align 8
  %call19 = call ptr %21(ptr %22, i64 %add)
  br label %if.end20

if.end20:
  %start.0 = phi ptr [ %call10, %if.end8 ], [ %call19, %functrans.forget.exit ], [ null, %land.lhs.true ]
  %tobool21.not = icmp eq ptr %start.0, null
  br i1 %tobool21.not, label %return, label %if.end23

if.end23:
  %add.ptr = getelementptr inbounds nuw i8, ptr %start.0, i64 4111
  %23 = ptrtoint ptr %add.ptr to i64
  %and = and i64 %23, 4095
  %idx.neg = sub nsw i64 0, %and
  %add.ptr26 = getelementptr inbounds i8, ptr %add.ptr, i64 %idx.neg
  %add.ptr.i = getelementptr inbounds i8, ptr %add.ptr26, i64 -16
  store ptr %start.0, ptr %add.ptr.i, align 8
  %.compoundliteral.sroa.2.0.call27.sroa_idx = getelementptr inbounds i8, ptr %add.ptr26, i64 -8
  store i64 %size, ptr %.compoundliteral.sroa.2.0.call27.sroa_idx, align 8
  br label %return

return:
  %retval.2 = phi ptr [ %spec.select.i, %if.then3 ], [ null, %entry ], [ %add.ptr26, %if.end23 ], [ null, %if.end20 ]
  ret ptr %retval.2
}

define void @functrans.forget(ptr %store) {
entry:
  %busy.i = getelementptr inbounds nuw i8, ptr %store, i64 72
  %0 = atomicrmw xchg ptr %busy.i, i64 1 acquire, align 8
  %tobool.not.i = icmp eq i64 %0, 0
  br i1 %tobool.not.i, label %while.cond.preheader, label %return

while.cond.preheader:
  %count = getelementptr inbounds nuw i8, ptr %store, i64 56
  %1 = load i64, ptr %count, align 8
  %tobool.not8 = icmp eq i64 %1, 0
  br i1 %tobool.not8, label %while.end, label %while.body.lr.ph

while.body.lr.ph:
  %blocks.i = getelementptr inbounds nuw i8, ptr %store, i64 80
  %kept.i = getelementptr inbounds nuw i8, ptr %store, i64 48
  %release.i = getelementptr inbounds nuw i8, ptr %store, i64 32
  br label %while.body

while.body:
  %2 = phi i64 [ %1, %while.body.lr.ph ], [ %9, %taken.exit ]
  %3 = load ptr, ptr %blocks.i, align 8
  %dec.i = add nsw i64 %2, -1
  store i64 %dec.i, ptr %count, align 8
  %size.i = getelementptr inbounds i8, ptr %3, i64 -8
  %4 = load i64, ptr %size.i, align 8
  %5 = load i64, ptr %kept.i, align 8
  %sub.i = sub nsw i64 %5, %4
  store i64 %sub.i, ptr %kept.i, align 8
  %cmp16.i = icmp sgt i64 %2, 1
  br i1 %cmp16.i, label %for.body.i, label %taken.exit

for.body.i:
  %i.addr.017.i = phi i64 [ %add.i, %for.body.i ], [ 0, %while.body ]
  %add.i = add nuw nsw i64 %i.addr.017.i, 1
  %arrayidx3.i = getelementptr inbounds nuw ptr, ptr %blocks.i, i64 %add.i
  %6 = load ptr, ptr %arrayidx3.i, align 8
  %arrayidx5.i = getelementptr inbounds nuw ptr, ptr %blocks.i, i64 %i.addr.017.i
  store ptr %6, ptr %arrayidx5.i, align 8
  %exitcond.not.i = icmp eq i64 %add.i, %dec.i
  br i1 %exitcond.not.i, label %taken.exit, label %for.body.i

taken.exit:
  %add.ptr.i.i = getelementptr inbounds i8, ptr %3, i64 -16
  %block.sroa.0.0.copyload.i = load ptr, ptr %add.ptr.i.i, align 8
  %block.sroa.4.0.copyload.i = load i64, ptr %size.i, align 8
  %7 = load ptr, ptr %release.i, align 8
  %8 = load ptr, ptr %store, align 8
  %add.i6 = add nsw i64 %block.sroa.4.0.copyload.i, 4111
  call void %7(ptr %8, ptr %block.sroa.0.0.copyload.i, i64 %add.i6)
  %9 = load i64, ptr %count, align 8
  %tobool.not = icmp eq i64 %9, 0
  br i1 %tobool.not, label %while.end, label %while.body

while.end:
  store atomic i64 0, ptr %busy.i release, align 8
  br label %return

return:
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)

define ptr @functrans.allocate_zeros(ptr %store, i64 %count, i64 %size) {
entry:
  %tobool.not = icmp eq i64 %size, 0
  br i1 %tobool.not, label %if.end, label %land.lhs.true

land.lhs.true:
  %div = udiv i64 9223372036854775807, %size
  %cmp = icmp ugt i64 %count, %div
  br i1 %cmp, label %return, label %if.end

if.end:
  %mul = mul i64 %size, %count
  %call = call ptr @functrans.allocate(ptr %store, i64 %mul)
  %tobool1.not = icmp eq ptr %call, null
  br i1 %tobool1.not, label %return, label %if.then2

if.then2:
  call void @llvm.memset.p0.i64(ptr align 1 %call, i8 0, i64 %mul, i1 false)
  br label %return

return:
  %retval.0 = phi ptr [ null, %land.lhs.true ], [ %call, %if.then2 ], [ null, %if.end ]
  ret ptr %retval.0
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)

define ptr @functrans.resize(ptr %store, ptr %data, i64 %size) {
entry:
  %call = call ptr @functrans.allocate(ptr %store, i64 %size)
  %tobool.not = icmp eq ptr %call, null
  br i1 %tobool.not, label %cleanup, label %if.end

if.end:
  %add.ptr.i = getelementptr inbounds i8, ptr %data, i64 -16
  %size2 = getelementptr inbounds i8, ptr %data, i64 -8
  %0 = load i64, ptr %size2, align 8
  %cond = call i64 @llvm.umin.i64(i64 %0, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %call, ptr align 1 %data, i64 %cond, i1 false)
  %size1.i = getelementptr inbounds i8, ptr %data, i64 -8
  %1 = load i64, ptr %size1.i, align 8
  %limit.i = getelementptr inbounds nuw i8, ptr %store, i64 40
  %2 = load i64, ptr %limit.i, align 8
  %cmp.i = icmp sgt i64 %1, %2
  br i1 %cmp.i, label %if.then.i, label %lor.lhs.false.i

lor.lhs.false.i:
  %busy.i.i = getelementptr inbounds nuw i8, ptr %store, i64 72
  %3 = atomicrmw xchg ptr %busy.i.i, i64 1 acquire, align 8
  %tobool.not.i.i = icmp eq i64 %3, 0
  br i1 %tobool.not.i.i, label %while.cond.preheader.i, label %if.then.i

while.cond.preheader.i:
  %kept.i = getelementptr inbounds nuw i8, ptr %store, i64 48
  %count.i = getelementptr inbounds nuw i8, ptr %store, i64 56
  %blocks.i.i = getelementptr inbounds nuw i8, ptr %store, i64 80
  %release.i31.i = getelementptr inbounds nuw i8, ptr %store, i64 32
  br label %while.cond.i

if.then.i:
  %block.sroa.0.0.copyload.i.i = load ptr, ptr %add.ptr.i, align 8
  %block.sroa.4.0.copyload.i.i = load i64, ptr %size1.i, align 8
  %release.i.i = getelementptr inbounds nuw i8, ptr %store, i64 32
  %4 = load ptr, ptr %release.i.i, align 8
  %5 = load ptr, ptr %store, align 8
  %add.i.i = add nsw i64 %block.sroa.4.0.copyload.i.i, 4111
  call void %4(ptr %5, ptr %block.sroa.0.0.copyload.i.i, i64 %add.i.i)
  br label %cleanup

while.cond.i:
  %6 = load i64, ptr %count.i, align 8
  %cmp3.i = icmp eq i64 %6, 16
  br i1 %cmp3.i, label %while.body.i, label %lor.rhs.i

lor.rhs.i:
  %7 = load i64, ptr %kept.i, align 8
  %add.i = add nsw i64 %7, %1
  %8 = load i64, ptr %limit.i, align 8
  %cmp5.i = icmp sgt i64 %add.i, %8
  br i1 %cmp5.i, label %while.body.i, label %while.end.i

while.body.i:
  %9 = load ptr, ptr %blocks.i.i, align 8
  %dec.i.i = add nsw i64 %6, -1
  store i64 %dec.i.i, ptr %count.i, align 8
  %size.i.i = getelementptr inbounds i8, ptr %9, i64 -8
  %10 = load i64, ptr %size.i.i, align 8
  %11 = load i64, ptr %kept.i, align 8
  %sub.i.i = sub nsw i64 %11, %10
  store i64 %sub.i.i, ptr %kept.i, align 8
  %cmp16.i.i = icmp sgt i64 %6, 1
  br i1 %cmp16.i.i, label %for.body.i.i, label %taken.exit.i

for.body.i.i:
  %i.addr.017.i.i = phi i64 [ %add.i26.i, %for.body.i.i ], [ 0, %while.body.i ]
  %add.i26.i = add nuw nsw i64 %i.addr.017.i.i, 1
  %arrayidx3.i.i = getelementptr inbounds nuw ptr, ptr %blocks.i.i, i64 %add.i26.i
  %12 = load ptr, ptr %arrayidx3.i.i, align 8
  %arrayidx5.i.i = getelementptr inbounds nuw ptr, ptr %blocks.i.i, i64 %i.addr.017.i.i
  store ptr %12, ptr %arrayidx5.i.i, align 8
  %exitcond.not.i.i = icmp eq i64 %add.i26.i, %dec.i.i
  br i1 %exitcond.not.i.i, label %taken.exit.i, label %for.body.i.i

taken.exit.i:
  %add.ptr.i.i27.i = getelementptr inbounds i8, ptr %9, i64 -16
  %block.sroa.0.0.copyload.i28.i = load ptr, ptr %add.ptr.i.i27.i, align 8
  %block.sroa.4.0.copyload.i30.i = load i64, ptr %size.i.i, align 8
  %13 = load ptr, ptr %release.i31.i, align 8
  %14 = load ptr, ptr %store, align 8
  %add.i32.i = add nsw i64 %block.sroa.4.0.copyload.i30.i, 4111
  call void %13(ptr %14, ptr %block.sroa.0.0.copyload.i28.i, i64 %add.i32.i)
  br label %while.cond.i

while.end.i:
  %inc.i = add nsw i64 %6, 1
  store i64 %inc.i, ptr %count.i, align 8
  %arrayidx.i = getelementptr inbounds ptr, ptr %blocks.i.i, i64 %6
  store ptr %data, ptr %arrayidx.i, align 8
  store i64 %add.i, ptr %kept.i, align 8
  store atomic i64 0, ptr %busy.i.i release, align 8
  br label %cleanup

cleanup:
  %retval.0 = phi ptr [ null, %entry ], [ %call, %if.then.i ], [ %call, %while.end.i ]
  ret ptr %retval.0
}

define void @functrans.release(ptr %store, ptr %data, i64 %size) {
entry:
  %add.ptr.i = getelementptr inbounds i8, ptr %data, i64 -16
  %size1 = getelementptr inbounds i8, ptr %data, i64 -8
  %0 = load i64, ptr %size1, align 8
  %limit = getelementptr inbounds nuw i8, ptr %store, i64 40
  %1 = load i64, ptr %limit, align 8
  %cmp = icmp sgt i64 %0, %1
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %busy.i = getelementptr inbounds nuw i8, ptr %store, i64 72
  %2 = atomicrmw xchg ptr %busy.i, i64 1 acquire, align 8
  %tobool.not.i = icmp eq i64 %2, 0
  br i1 %tobool.not.i, label %while.cond.preheader, label %if.then

while.cond.preheader:
  %kept = getelementptr inbounds nuw i8, ptr %store, i64 48
  %count = getelementptr inbounds nuw i8, ptr %store, i64 56
  %blocks.i = getelementptr inbounds nuw i8, ptr %store, i64 80
  %kept.i = getelementptr inbounds nuw i8, ptr %store, i64 48
  %release.i31 = getelementptr inbounds nuw i8, ptr %store, i64 32
  br label %while.cond

if.then:
  %block.sroa.0.0.copyload.i = load ptr, ptr %add.ptr.i, align 8
  %block.sroa.4.0.call.sroa_idx.i = getelementptr inbounds i8, ptr %data, i64 -8
  %block.sroa.4.0.copyload.i = load i64, ptr %block.sroa.4.0.call.sroa_idx.i, align 8
  %release.i = getelementptr inbounds nuw i8, ptr %store, i64 32
  %3 = load ptr, ptr %release.i, align 8
  %4 = load ptr, ptr %store, align 8
  %add.i = add nsw i64 %block.sroa.4.0.copyload.i, 4111
  call void %3(ptr %4, ptr %block.sroa.0.0.copyload.i, i64 %add.i)
  br label %cleanup

while.cond:
  %5 = load i64, ptr %count, align 8
  %cmp3 = icmp eq i64 %5, 16
  br i1 %cmp3, label %while.body, label %lor.rhs

lor.rhs:
  %6 = load i64, ptr %kept, align 8
  %add = add nsw i64 %6, %0
  %7 = load i64, ptr %limit, align 8
  %cmp5 = icmp sgt i64 %add, %7
  br i1 %cmp5, label %while.body, label %while.end

while.body:
  %8 = load ptr, ptr %blocks.i, align 8
  %dec.i = add nsw i64 %5, -1
  store i64 %dec.i, ptr %count, align 8
  %size.i = getelementptr inbounds i8, ptr %8, i64 -8
  %9 = load i64, ptr %size.i, align 8
  %10 = load i64, ptr %kept.i, align 8
  %sub.i = sub nsw i64 %10, %9
  store i64 %sub.i, ptr %kept.i, align 8
  %cmp16.i = icmp sgt i64 %5, 1
  br i1 %cmp16.i, label %for.body.i, label %taken.exit

for.body.i:
  %i.addr.017.i = phi i64 [ %add.i26, %for.body.i ], [ 0, %while.body ]
  %add.i26 = add nuw nsw i64 %i.addr.017.i, 1
  %arrayidx3.i = getelementptr inbounds nuw ptr, ptr %blocks.i, i64 %add.i26
  %11 = load ptr, ptr %arrayidx3.i, align 8
  %arrayidx5.i = getelementptr inbounds nuw ptr, ptr %blocks.i, i64 %i.addr.017.i
  store ptr %11, ptr %arrayidx5.i, align 8
  %exitcond.not.i = icmp eq i64 %add.i26, %dec.i
  br i1 %exitcond.not.i, label %taken.exit, label %for.body.i

taken.exit:
  %add.ptr.i.i27 = getelementptr inbounds i8, ptr %8, i64 -16
  %block.sroa.0.0.copyload.i28 = load ptr, ptr %add.ptr.i.i27, align 8
  %block.sroa.4.0.copyload.i30 = load i64, ptr %size.i, align 8
  %12 = load ptr, ptr %release.i31, align 8
  %13 = load ptr, ptr %store, align 8
  %add.i32 = add nsw i64 %block.sroa.4.0.copyload.i30, 4111
  call void %12(ptr %13, ptr %block.sroa.0.0.copyload.i28, i64 %add.i32)
  br label %while.cond

while.end:
  %blocks = getelementptr inbounds nuw i8, ptr %store, i64 80
  %inc = add nsw i64 %5, 1
  store i64 %inc, ptr %count, align 8
  %arrayidx = getelementptr inbounds ptr, ptr %blocks, i64 %5
  store ptr %data, ptr %arrayidx, align 8
  store i64 %add, ptr %kept, align 8
  store atomic i64 0, ptr %busy.i release, align 8
  br label %cleanup

cleanup:
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
