// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

/** What the reasons of problems and of rollouts mean in Chinese. In English, they are shown as they are. */
export const reasons = {
  // Markers.
  InvalidMarker: 'marker 无效',
  NoPods: '没有 Pod',

  // Probes that are planned and have no current state.
  PodNotBound: 'Pod 未绑定到节点',
  PodNotInitialized: 'Pod 未初始化',
  PodEnding: 'Pod 正在结束',
  NoPlan: '节点没有计划',
  NoAddress: 'Pod 没有地址',
  NotPlanned: '探测不在计划中',
  PlanOutdated: '计划已过时',
  PlanNotRunning: '计划未在执行',
  StateNotVisible: '状态不可见',
  EarlierMarker: '状态属于更早的 marker',
  NotProvided: '提供方未设置 condition',
  ContainerNotStarted: '容器未启动',
  ContainerNotStartedUp: '容器的启动探测未成功',
  NoResult: '没有结果',

  // Probes that agents cannot run as planned.
  CannotRun: '探测无法执行',
  NotEnded: '上一次探测未结束',
  RateLimited: '探测受到限速',
  WaitingForSlot: '等待执行名额',

  // Probes that are not planned.
  ContainerNotFound: '容器不存在',
  PortNotFound: '端口不存在',
  TimeoutTooLong: '超时时间太长',
  HandlerInvalid: '探测方式无效',
  StartupUnsupported: '不支持启动探测',
  PodPlanFull: 'Pod 的计划已满',
  TooManyMarkers: 'marker 太多',
  NamespaceExcluded: '命名空间被排除',
  ConditionTypeMissing: '缺少 condition 类型',
  ConditionTypeTaken: 'condition 类型已被占用',
  MillisecondsUnsupported: '不支持毫秒',
  StartupPolicyUnsupported: '不支持启动策略',

  // SidecarSets.
  NameConflict: '名称冲突',
  MetadataNotAllowed: '元数据不被允许',
  InvalidJSON: 'JSON 无效',
  InvalidContainer: '容器无效',
  RevisionNotFound: '版本不存在',
  InvalidSelector: '选择器无效',
  NotChecked: '未检查',
  TooManySets: 'SidecarSet 太多',
  InjectorUnavailable: '注入程序不可用',
  NotWritten: '无法写入',
  MustBeRecreated: '必须重建 Pod',

  // Rollouts of sets.
  NotObserved: '变更未处理',
  Creating: '正在创建 Pod',
  Updating: '正在更新 Pod',
  Guarded: '守卫保护 Pod',
  Deleting: '正在删除 Pod',
  NotAvailable: 'Pod 不可用',
  Paused: '已暂停',
  Complete: '已完成',
  ProgressDeadlineExceeded: '超过进度期限',
  WritesRefused: '写入被拒绝',
  PlanFailed: '无法规划下一步',
};
