; Generated from call.c by clang 22: python -m functrans.lowering.llvm.c.generate

%struct.number = type { [64 x i8], %union.anon }
%union.anon = type { double }

@table = internal constant [5 x ptr] [ptr @functrans.run, ptr @functrans.run_without_gil, ptr @functrans.run_numbers, ptr @functrans.match, ptr @functrans.results], align 16
@functrans.data = external constant i64, align 8
@functrans.items = external constant i64, align 8
@functrans.size = external constant i64, align 8
@functrans.type = external constant i64, align 8
@functrans.flags = external constant i64, align 8
@functrans.ndim = external constant i64, align 8
@functrans.tidy = external constant i32, align 4
@functrans.dtype = external constant i64, align 8
@functrans.shape = external constant i64, align 8
@functrans.strides = external constant i64, align 8

define ptr @functrans.calls() {
entry:
  ret ptr @table
}

define ptr @functrans.run(ptr %self, ptr %leaves) {
entry:
  %0 = load i64, ptr @functrans.data, align 8
  %add.ptr = getelementptr inbounds i8, ptr %self, i64 %0
  %1 = load ptr, ptr %add.ptr, align 8
  %2 = load ptr, ptr %1, align 8
  %3 = ptrtoint ptr %leaves to i64
  %numbers = getelementptr inbounds nuw i8, ptr %1, i64 8
  %4 = ptrtoint ptr %numbers to i64
  %call = call i64 %2(i64 %3, i64 %4)
  %cmp.i = icmp slt i64 %call, 0
  br i1 %cmp.i, label %answer.exit, label %cond.false.i

cond.false.i:
  %call.i = call ptr @PyLong_FromLongLong(i64 %call)
  br label %answer.exit

answer.exit:
  %cond.i = phi ptr [ %call.i, %cond.false.i ], [ null, %entry ]
  ret ptr %cond.i
}

define ptr @functrans.run_without_gil(ptr %self, ptr %leaves) {
entry:
  %0 = load i64, ptr @functrans.data, align 8
  %add.ptr = getelementptr inbounds i8, ptr %self, i64 %0
  %1 = load ptr, ptr %add.ptr, align 8
  %call = call ptr @PyEval_SaveThread()
  %2 = load ptr, ptr %1, align 8
  %3 = ptrtoint ptr %leaves to i64
  %numbers = getelementptr inbounds nuw i8, ptr %1, i64 8
  %4 = ptrtoint ptr %numbers to i64
  %call1 = call i64 %2(i64 %3, i64 %4)
  call void @PyEval_RestoreThread(ptr %call)
  %cmp.i = icmp slt i64 %call1, 0
  br i1 %cmp.i, label %answer.exit, label %cond.false.i

cond.false.i:
  %call.i = call ptr @PyLong_FromLongLong(i64 %call1)
  br label %answer.exit

answer.exit:
  %cond.i = phi ptr [ %call.i, %cond.false.i ], [ null, %entry ]
  ret ptr %cond.i
}

declare ptr @PyEval_SaveThread()

declare void @PyEval_RestoreThread(ptr)

define ptr @functrans.run_numbers(ptr %self, ptr %leaves) {
entry:
  %overflow.i = alloca i32, align 4
  %tuple = alloca [576 x i8], align 16
  %numbers = alloca [16 x %struct.number], align 16
  %0 = load i64, ptr @functrans.data, align 8
  %add.ptr = getelementptr inbounds i8, ptr %self, i64 %0
  %1 = load ptr, ptr %add.ptr, align 8
  %count1 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %2 = load i64, ptr %count1, align 8
  %3 = load i64, ptr @functrans.items, align 8
  %add.ptr2 = getelementptr inbounds i8, ptr %leaves, i64 %3
  %add.ptr3 = getelementptr inbounds i8, ptr %tuple, i64 %3
  %cmp.not60 = icmp sgt i64 %2, 0
  br i1 %cmp.not60, label %for.body.lr.ph, label %cleanup

for.body.lr.ph:
  %kinds = getelementptr inbounds nuw i8, ptr %1, i64 24
  br label %for.body

for.body:
  %next.062 = phi i64 [ 0, %for.body.lr.ph ], [ %next.1, %for.inc ]
  %i.061 = phi i64 [ 0, %for.body.lr.ph ], [ %inc16, %for.inc ]
  %arrayidx = getelementptr inbounds nuw ptr, ptr %add.ptr2, i64 %i.061
  %4 = load ptr, ptr %arrayidx, align 8
  %arrayidx4 = getelementptr inbounds nuw ptr, ptr %add.ptr3, i64 %i.061
  store ptr %4, ptr %arrayidx4, align 8
  %arrayidx5 = getelementptr inbounds nuw i64, ptr %kinds, i64 %i.061
  %5 = load i64, ptr %arrayidx5, align 8
  %cmp6 = icmp eq i64 %5, 0
  br i1 %cmp6, label %for.inc, label %if.end

if.end:
  %arrayidx10 = getelementptr inbounds %struct.number, ptr %numbers, i64 %next.062
  store i32 0, ptr %overflow.i, align 4
  %cmp.i = icmp eq i64 %5, 1
  br i1 %cmp.i, label %if.then.i, label %if.else.i

if.then.i:
  %call.i = call double @PyFloat_AsDouble(ptr %4)
  %value.i = getelementptr inbounds nuw i8, ptr %arrayidx10, i64 64
  store double %call.i, ptr %value.i, align 8
  br label %read_number.exit

if.else.i:
  %call1.i = call i64 @PyLong_AsLongLongAndOverflow(ptr %4, ptr %overflow.i)
  %cmp2.i = icmp eq i64 %5, 2
  br i1 %cmp2.i, label %if.then3.i, label %if.else5.i

if.then3.i:
  %value4.i = getelementptr inbounds nuw i8, ptr %arrayidx10, i64 64
  store i64 %call1.i, ptr %value4.i, align 8
  br label %read_number.exit

if.else5.i:
  %cmp6.i = icmp ne i64 %call1.i, 0
  %value7.i = getelementptr inbounds nuw i8, ptr %arrayidx10, i64 64
  %storedv.i = zext i1 %cmp6.i to i8
  store i8 %storedv.i, ptr %value7.i, align 8
  br label %read_number.exit

read_number.exit:
  %value9.i = getelementptr inbounds nuw i8, ptr %arrayidx10, i64 64
  %add.ptr.i = getelementptr inbounds i8, ptr %arrayidx10, i64 %0
  store ptr %value9.i, ptr %add.ptr.i, align 8
  %6 = load i32, ptr %overflow.i, align 4
  %cmp10.i = icmp eq i32 %6, 0
  br i1 %cmp10.i, label %if.end13, label %if.then11

if.then11:
  %call.i55 = call ptr @PyLong_FromLongLong(i64 1)
  br label %cleanup

if.end13:
  %inc = add nsw i64 %next.062, 1
  store ptr %arrayidx10, ptr %arrayidx4, align 8
  br label %for.inc

for.inc:
  %next.1 = phi i64 [ %next.062, %for.body ], [ %inc, %if.end13 ]
  %inc16 = add nuw nsw i64 %i.061, 1
  %exitcond.not = icmp eq i64 %inc16, %2
  br i1 %exitcond.not, label %cleanup, label %for.body

cleanup:
  %cmp.not59 = phi i1 [ true, %if.then11 ], [ false, %entry ], [ false, %for.inc ]
  %retval.0 = phi ptr [ %call.i55, %if.then11 ], [ undef, %entry ], [ undef, %for.inc ]
  br i1 %cmp.not59, label %cleanup30, label %for.end

for.end:
  %without_gil = getelementptr inbounds nuw i8, ptr %1, i64 8
  %7 = load i64, ptr %without_gil, align 8
  %tobool.not = icmp eq i64 %7, 0
  br i1 %tobool.not, label %cond.end, label %cond.true

cond.true:
  %call17 = call ptr @PyEval_SaveThread()
  br label %cond.end

cond.end:
  %cond = phi ptr [ %call17, %cond.true ], [ null, %for.end ]
  %8 = load ptr, ptr %1, align 8
  %9 = ptrtoint ptr %tuple to i64
  %kinds19 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %add.ptr21 = getelementptr inbounds i64, ptr %kinds19, i64 %2
  %10 = ptrtoint ptr %add.ptr21 to i64
  %call22 = call i64 %8(i64 %9, i64 %10)
  %11 = load i64, ptr %without_gil, align 8
  %tobool24.not = icmp eq i64 %11, 0
  br i1 %tobool24.not, label %if.end26, label %if.then25

if.then25:
  call void @PyEval_RestoreThread(ptr %cond)
  br label %if.end26

if.end26:
  %cmp.i56 = icmp slt i64 %call22, 0
  br i1 %cmp.i56, label %cleanup30, label %cond.false.i

cond.false.i:
  %call.i57 = call ptr @PyLong_FromLongLong(i64 %call22)
  br label %cleanup30

cleanup30:
  %retval.1 = phi ptr [ %retval.0, %cleanup ], [ %call.i57, %cond.false.i ], [ null, %if.end26 ]
  ret ptr %retval.1
}

define ptr @functrans.match(ptr %self, ptr %leaves) {
entry:
  %0 = load i64, ptr @functrans.data, align 8
  %add.ptr = getelementptr inbounds i8, ptr %self, i64 %0
  %1 = load ptr, ptr %add.ptr, align 8
  %2 = load i64, ptr %1, align 8
  %3 = load i64, ptr @functrans.size, align 8
  %add.ptr.i = getelementptr inbounds i8, ptr %leaves, i64 %3
  %4 = load i64, ptr %add.ptr.i, align 8
  %cmp.not.i = icmp eq i64 %4, %2
  br i1 %cmp.not.i, label %if.end.i, label %are_like.exit

if.end.i:
  %5 = load i64, ptr @functrans.items, align 8
  %add.ptr1.i = getelementptr inbounds i8, ptr %leaves, i64 %5
  %cmp3.not.not40.i = icmp sgt i64 %2, 0
  br i1 %cmp3.not.not40.i, label %for.body.lr.ph.i, label %are_like.exit

for.body.lr.ph.i:
  %add.ptr2.i = getelementptr inbounds nuw i8, ptr %1, i64 8
  %6 = load i64, ptr @functrans.type, align 8
  %7 = load i64, ptr @functrans.flags, align 8
  %8 = load i32, ptr @functrans.tidy, align 4
  %9 = load i64, ptr @functrans.ndim, align 8
  %10 = load i64, ptr @functrans.dtype, align 8
  %11 = load i64, ptr @functrans.shape, align 8
  br label %for.body.i

for.body.i:
  %i.042.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %inc.i, %for.inc.i ]
  %leaf.041.i = phi ptr [ %add.ptr2.i, %for.body.lr.ph.i ], [ %leaf.2.i, %for.inc.i ]
  %arrayidx4.i = getelementptr inbounds nuw ptr, ptr %add.ptr1.i, i64 %i.042.i
  %12 = load ptr, ptr %arrayidx4.i, align 8
  %add.ptr5.i = getelementptr inbounds i8, ptr %12, i64 %6
  %13 = load ptr, ptr %add.ptr5.i, align 8
  %14 = load ptr, ptr %leaf.041.i, align 8
  %cmp7.not.i = icmp eq ptr %13, %14
  br i1 %cmp7.not.i, label %if.end10.i, label %land.lhs.true.i

land.lhs.true.i:
  %other_type.i = getelementptr inbounds nuw i8, ptr %leaf.041.i, i64 8
  %15 = load ptr, ptr %other_type.i, align 8
  %cmp8.not.i = icmp eq ptr %13, %15
  br i1 %cmp8.not.i, label %if.end10.i, label %are_like.exit

if.end10.i:
  %axes.i = getelementptr inbounds nuw i8, ptr %leaf.041.i, i64 16
  %16 = load i64, ptr %axes.i, align 8
  %cmp11.i = icmp slt i64 %16, 0
  br i1 %cmp11.i, label %if.then12.i, label %if.else.i

if.then12.i:
  %dtype.i = getelementptr inbounds nuw i8, ptr %leaf.041.i, i64 24
  br label %for.inc.i

if.else.i:
  %add.ptr.i.i = getelementptr inbounds i8, ptr %12, i64 %7
  %17 = load i32, ptr %add.ptr.i.i, align 4
  %and.i.i = and i32 %17, %8
  %cmp.not.i.i = icmp eq i32 %and.i.i, %8
  br i1 %cmp.not.i.i, label %lor.lhs.false.i.i, label %are_like.exit

lor.lhs.false.i.i:
  %add.ptr1.i.i = getelementptr inbounds i8, ptr %12, i64 %9
  %18 = load i32, ptr %add.ptr1.i.i, align 4
  %conv.i.i = sext i32 %18 to i64
  %cmp2.not.i.i = icmp eq i64 %16, %conv.i.i
  br i1 %cmp2.not.i.i, label %lor.lhs.false4.i.i, label %are_like.exit

lor.lhs.false4.i.i:
  %add.ptr5.i.i = getelementptr inbounds i8, ptr %12, i64 %10
  %19 = load ptr, ptr %add.ptr5.i.i, align 8
  %dtype.i.i = getelementptr inbounds nuw i8, ptr %leaf.041.i, i64 24
  %20 = load ptr, ptr %dtype.i.i, align 8
  %cmp6.not.i.i = icmp eq ptr %19, %20
  br i1 %cmp6.not.i.i, label %if.end.i.i, label %are_like.exit

if.end.i.i:
  %add.ptr8.i.i = getelementptr inbounds i8, ptr %12, i64 %11
  %21 = load ptr, ptr %add.ptr8.i.i, align 8
  %cmp10.not.not30.i.not.i = icmp eq i64 %16, 0
  br i1 %cmp10.not.not30.i.not.i, label %if.end14.i, label %for.body.lr.ph.i.i

for.body.lr.ph.i.i:
  %shape12.i.i = getelementptr inbounds nuw i8, ptr %leaf.041.i, i64 32
  br label %for.body.i.i

for.body.i.i:
  %d.031.i.i = phi i64 [ 0, %for.body.lr.ph.i.i ], [ %inc.i.i, %for.body.i.i ]
  %arrayidx.i.i = getelementptr inbounds nuw i64, ptr %21, i64 %d.031.i.i
  %22 = load i64, ptr %arrayidx.i.i, align 8
  %arrayidx13.i.i = getelementptr inbounds nuw i64, ptr %shape12.i.i, i64 %d.031.i.i
  %23 = load i64, ptr %arrayidx13.i.i, align 8
  %cmp14.not.i.i = icmp eq i64 %22, %23
  %inc.i.i = add nuw nsw i64 %d.031.i.i, 1
  %exitcond.not.i.i = icmp ne i64 %inc.i.i, %16
  %or.cond.not.i.i = select i1 %cmp14.not.i.i, i1 %exitcond.not.i.i, i1 false
  br i1 %or.cond.not.i.i, label %for.body.i.i, label %is_like.exit.i

is_like.exit.i:
  br i1 %cmp14.not.i.i, label %if.end14.i, label %are_like.exit

if.end14.i:
  %shape.i = getelementptr inbounds nuw i8, ptr %leaf.041.i, i64 32
  %add.ptr16.i = getelementptr inbounds nuw i64, ptr %shape.i, i64 %16
  br label %for.inc.i

for.inc.i:
  %leaf.2.i = phi ptr [ %dtype.i, %if.then12.i ], [ %add.ptr16.i, %if.end14.i ]
  %inc.i = add nuw nsw i64 %i.042.i, 1
  %exitcond.not.i = icmp eq i64 %inc.i, %2
  br i1 %exitcond.not.i, label %are_like.exit, label %for.body.i

are_like.exit:
  %retval.4.i = phi i64 [ 0, %entry ], [ 1, %if.end.i ], [ 0, %if.else.i ], [ 0, %land.lhs.true.i ], [ 0, %is_like.exit.i ], [ 1, %for.inc.i ], [ 0, %lor.lhs.false.i.i ], [ 0, %lor.lhs.false4.i.i ]
  %call1 = call ptr @PyBool_FromLong(i64 %retval.4.i)
  ret ptr %call1
}

declare ptr @PyBool_FromLong(i64)

define ptr @functrans.results(ptr %self, ptr %none) {
entry:
  %0 = load i64, ptr @functrans.data, align 8
  %add.ptr = getelementptr inbounds i8, ptr %self, i64 %0
  %1 = load ptr, ptr %add.ptr, align 8
  %add.ptr1 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %count = getelementptr inbounds nuw i8, ptr %1, i64 48
  %2 = load i64, ptr %count, align 8
  %cmp = icmp eq i64 %2, 1
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %call = call fastcc ptr @new_result(ptr %1, ptr %add.ptr1)
  br label %cleanup17

if.end:
  %call3 = call ptr @PyTuple_New(i64 %2)
  %tobool.not = icmp eq ptr %call3, null
  br i1 %tobool.not, label %cleanup17, label %if.end5

if.end5:
  %3 = load i64, ptr @functrans.items, align 8
  %add.ptr6 = getelementptr inbounds i8, ptr %call3, i64 %3
  %4 = load i64, ptr %count, align 8
  %cmp8.not34 = icmp sgt i64 %4, 0
  br i1 %cmp8.not34, label %for.body, label %cleanup17

for.body:
  %i.036 = phi i64 [ %inc, %if.end13 ], [ 0, %if.end5 ]
  %kind.035 = phi ptr [ %add.ptr14, %if.end13 ], [ %add.ptr1, %if.end5 ]
  %call9 = call fastcc ptr @new_result(ptr %1, ptr %kind.035)
  %arrayidx = getelementptr inbounds nuw ptr, ptr %add.ptr6, i64 %i.036
  store ptr %call9, ptr %arrayidx, align 8
  %tobool11.not = icmp eq ptr %call9, null
  br i1 %tobool11.not, label %if.then12, label %if.end13

if.then12:
  call void @Py_DecRef(ptr %call3)
  br label %cleanup17

if.end13:
  %shape = getelementptr inbounds nuw i8, ptr %kind.035, i64 32
  %ndim = getelementptr inbounds nuw i8, ptr %kind.035, i64 24
  %5 = load i64, ptr %ndim, align 8
  %add.ptr14 = getelementptr inbounds i64, ptr %shape, i64 %5
  %inc = add nuw nsw i64 %i.036, 1
  %6 = load i64, ptr %count, align 8
  %cmp8.not = icmp slt i64 %inc, %6
  br i1 %cmp8.not, label %for.body, label %cleanup17

cleanup17:
  %retval.3 = phi ptr [ %call, %if.then ], [ null, %if.end ], [ null, %if.then12 ], [ %call3, %if.end5 ], [ %call3, %if.end13 ]
  ret ptr %retval.3
}

define internal fastcc ptr @new_result(ptr %kinds, ptr %kind) {
entry:
  %ndim1 = getelementptr inbounds nuw i8, ptr %kind, i64 24
  %0 = load i64, ptr %ndim1, align 8
  %conv = trunc i64 %0 to i32
  %is_large = getelementptr inbounds nuw i8, ptr %kind, i64 16
  %1 = load i64, ptr %is_large, align 8
  %tobool.not = icmp eq i64 %1, 0
  br i1 %tobool.not, label %cond.false, label %cond.true

cond.true:
  %set_handler.i = getelementptr inbounds nuw i8, ptr %kinds, i64 16
  %2 = load ptr, ptr %set_handler.i, align 8
  %large.i = getelementptr inbounds nuw i8, ptr %kinds, i64 32
  %3 = load ptr, ptr %large.i, align 8
  %call.i = call ptr %2(ptr %3)
  %tobool.not.i = icmp eq ptr %call.i, null
  br i1 %tobool.not.i, label %cond.end, label %if.end.i

if.end.i:
  %usual.i = getelementptr inbounds nuw i8, ptr %kinds, i64 24
  %4 = load ptr, ptr %usual.i, align 8
  %cmp.i = icmp eq ptr %call.i, %4
  br i1 %cmp.i, label %cond.true.i, label %cond.end.i

cond.true.i:
  %dtype.i.i = getelementptr inbounds nuw i8, ptr %kind, i64 8
  %5 = load ptr, ptr %dtype.i.i, align 8
  call void @Py_IncRef(ptr %5)
  %6 = load ptr, ptr %kinds, align 8
  %plain.i.i = getelementptr inbounds nuw i8, ptr %kinds, i64 40
  %7 = load ptr, ptr %plain.i.i, align 8
  %8 = load ptr, ptr %dtype.i.i, align 8
  %9 = load i64, ptr %ndim1, align 8
  %conv.i.i = trunc i64 %9 to i32
  %shape.i.i = getelementptr inbounds nuw i8, ptr %kind, i64 32
  %call.i.i = call ptr %6(ptr %7, ptr %8, i32 %conv.i.i, ptr %shape.i.i, ptr null, ptr null, i32 0, ptr null)
  br label %cond.end.i

cond.end.i:
  %cond.i = phi ptr [ %call.i.i, %cond.true.i ], [ null, %if.end.i ]
  %10 = load ptr, ptr %set_handler.i, align 8
  %call3.i = call ptr %10(ptr %call.i)
  %tobool4.not.i = icmp eq ptr %call3.i, null
  br i1 %tobool4.not.i, label %if.then5.i, label %if.else.i

if.then5.i:
  %tobool6.not.i = icmp eq ptr %cond.i, null
  br i1 %tobool6.not.i, label %if.end14.i, label %if.then7.i

if.then7.i:
  call void @Py_DecRef(ptr %cond.i)
  br label %if.end14.i

if.else.i:
  call void @Py_DecRef(ptr %call3.i)
  %11 = load ptr, ptr %usual.i, align 8
  %cmp10.not.i = icmp eq ptr %call.i, %11
  br i1 %cmp10.not.i, label %if.end14.i, label %if.then11.i

if.then11.i:
  %dtype.i29.i = getelementptr inbounds nuw i8, ptr %kind, i64 8
  %12 = load ptr, ptr %dtype.i29.i, align 8
  call void @Py_IncRef(ptr %12)
  %13 = load ptr, ptr %kinds, align 8
  %plain.i30.i = getelementptr inbounds nuw i8, ptr %kinds, i64 40
  %14 = load ptr, ptr %plain.i30.i, align 8
  %15 = load ptr, ptr %dtype.i29.i, align 8
  %16 = load i64, ptr %ndim1, align 8
  %conv.i32.i = trunc i64 %16 to i32
  %shape.i33.i = getelementptr inbounds nuw i8, ptr %kind, i64 32
  %call.i34.i = call ptr %13(ptr %14, ptr %15, i32 %conv.i32.i, ptr %shape.i33.i, ptr null, ptr null, i32 0, ptr null)
  br label %if.end14.i

if.end14.i:
  %memory.0.i = phi ptr [ %call.i34.i, %if.then11.i ], [ %cond.i, %if.else.i ], [ null, %if.then7.i ], [ null, %if.then5.i ]
  call void @Py_DecRef(ptr %call.i)
  br label %cond.end

cond.false:
  %dtype.i = getelementptr inbounds nuw i8, ptr %kind, i64 8
  %17 = load ptr, ptr %dtype.i, align 8
  call void @Py_IncRef(ptr %17)
  %18 = load ptr, ptr %kinds, align 8
  %plain.i = getelementptr inbounds nuw i8, ptr %kinds, i64 40
  %19 = load ptr, ptr %plain.i, align 8
  %20 = load ptr, ptr %dtype.i, align 8
  %21 = load i64, ptr %ndim1, align 8
  %conv.i = trunc i64 %21 to i32
  %shape.i = getelementptr inbounds nuw i8, ptr %kind, i64 32
  %call.i37 = call ptr %18(ptr %19, ptr %20, i32 %conv.i, ptr %shape.i, ptr null, ptr null, i32 0, ptr null)
  br label %cond.end

cond.end:
  %cond = phi ptr [ %call.i37, %cond.false ], [ %memory.0.i, %if.end14.i ], [ null, %cond.true ]
  %tobool3.not = icmp eq ptr %cond, null
  br i1 %tobool3.not, label %cleanup, label %lor.lhs.false

lor.lhs.false:
  %22 = load ptr, ptr %kind, align 8
  %plain = getelementptr inbounds nuw i8, ptr %kinds, i64 40
  %23 = load ptr, ptr %plain, align 8
  %cmp = icmp eq ptr %22, %23
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  %dtype = getelementptr inbounds nuw i8, ptr %kind, i64 8
  %24 = load ptr, ptr %dtype, align 8
  call void @Py_IncRef(ptr %24)
  %25 = load ptr, ptr %kinds, align 8
  %26 = load ptr, ptr %kind, align 8
  %27 = load ptr, ptr %dtype, align 8
  %shape = getelementptr inbounds nuw i8, ptr %kind, i64 32
  %28 = load i64, ptr @functrans.strides, align 8
  %add.ptr = getelementptr inbounds i8, ptr %cond, i64 %28
  %29 = load ptr, ptr %add.ptr, align 8
  %30 = load i64, ptr @functrans.data, align 8
  %add.ptr7 = getelementptr inbounds i8, ptr %cond, i64 %30
  %31 = load ptr, ptr %add.ptr7, align 8
  %call8 = call ptr %25(ptr %26, ptr %27, i32 %conv, ptr %shape, ptr %29, ptr %31, i32 0, ptr null)
  %tobool9.not = icmp eq ptr %call8, null
  br i1 %tobool9.not, label %cleanup.sink.split, label %if.else

if.else:
  %set_base = getelementptr inbounds nuw i8, ptr %kinds, i64 8
  %32 = load ptr, ptr %set_base, align 8
  %call11 = call i32 %32(ptr %call8, ptr %cond)
  %tobool12.not = icmp eq i32 %call11, 0
  br i1 %tobool12.not, label %cleanup, label %cleanup.sink.split

cleanup.sink.split:
  %cond.sink = phi ptr [ %cond, %if.end ], [ %call8, %if.else ]
  call void @Py_DecRef(ptr %cond.sink)
  br label %cleanup

cleanup:
  %retval.0 = phi ptr [ null, %cond.end ], [ %cond, %lor.lhs.false ], [ %call8, %if.else ], [ null, %cleanup.sink.split ]
  ret ptr %retval.0
}

declare ptr @PyTuple_New(i64)

declare void @Py_DecRef(ptr)

declare ptr @PyLong_FromLongLong(i64)

declare double @PyFloat_AsDouble(ptr)

declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)

declare void @Py_IncRef(ptr)
