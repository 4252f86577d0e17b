package org.checkerframework.checker.nullness.qual;

import java.lang.annotation.ElementType;
import java.lang.annotation.Target;

/** Stands in for the Checker Framework's annotation, which no package has: pgjdbc's tests carry it. */
@Target({ElementType.TYPE_USE, ElementType.TYPE_PARAMETER})
public @interface Nullable {
}
