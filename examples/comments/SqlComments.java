import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.Callable;
import javax.sql.DataSource;

/**
 * Says in a comment of each SQL statement what a program of JDBC is doing, and from which line it sends it. isotap (and
 * whoever else reads sqlcommenter's comments) then names findings by it.
 *
 * <p>It wraps a {@link DataSource}, and so works for Hibernate, jOOQ, MyBatis, Spring and others that are given one:
 *
 * <pre>
 *   DataSource source = SqlComments.wrap(pool, "com.example.");   // of whose classes the places are
 *   SqlComments.action("orders#create", () -> ...);               // in a filter or an interceptor that knows the route
 * </pre>
 *
 * <p>It sees the file's name, not its directory, as Java does. Put it into a package of your own.
 */
public final class SqlComments {
  private static final ThreadLocal<String> ACTION = new ThreadLocal<>();

  private SqlComments() {}

  /** Runs what belongs to what the name says, and returns what it returns. */
  public static <T> T action(String name, Callable<T> run) throws Exception {
    String before = ACTION.get();
    ACTION.set(name);
    try {
      return run.call();
    } finally {
      ACTION.set(before);
    }
  }

  /** Returns a source whose connections add comments. Classes whose names begin with prefix count as the program's. */
  public static DataSource wrap(DataSource source, String prefix) {
    return proxy(DataSource.class, source, (of, method, args) -> {
      Object result = call(method, source, args);
      return result instanceof Connection c ? connection(c, prefix) : result;
    });
  }

  private static Connection connection(Connection c, String prefix) {
    return proxy(Connection.class, c, (of, method, args) -> {
      String name = method.getName();
      if ((name.equals("prepareStatement") || name.equals("prepareCall")) && args[0] instanceof String sql) {
        args[0] = sql + comment(prefix);
      }
      Object result = call(method, c, args);
      return name.equals("createStatement") ? statement((Statement) result, prefix) : result;
    });
  }

  private static Statement statement(Statement s, String prefix) {
    return proxy(Statement.class, s, (of, method, args) -> {
      String name = method.getName();
      if ((name.startsWith("execute") || name.equals("addBatch")) && args != null && args[0] instanceof String sql) {
        args[0] = sql + comment(prefix);
      }
      return call(method, s, args);
    });
  }

  private static <T> T proxy(Class<T> as, T of, InvocationHandler handler) {
    return as.cast(Proxy.newProxyInstance(as.getClassLoader(), new Class<?>[] {as}, handler));
  }

  private static Object call(Method method, Object of, Object[] args) throws Throwable {
    try {
      return method.invoke(of, args);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  private static String comment(String prefix) {
    StringBuilder said = new StringBuilder();
    String action = ACTION.get();
    if (action != null) {
      said.append("controller='").append(encode(action)).append('\'');
    }
    StackWalker.getInstance().walk(frames -> frames
        .filter(f -> f.getClassName().startsWith(prefix) && !isOwn(f.getClassName()) && f.getFileName() != null)
        .findFirst()).ifPresent(f -> said.append(said.isEmpty() ? "" : ",").append("file='")
            .append(encode(f.getFileName())).append("',line='").append(f.getLineNumber()).append('\''));
    return said.isEmpty() ? "" : " /*" + said + "*/";
  }

  private static boolean isOwn(String name) {
    return name.equals(SqlComments.class.getName()) || name.startsWith(SqlComments.class.getName() + "$");
  }

  // As sqlcommenter says: percent-encoded, and no quote that would end the value; an asterisk could end the comment.
  private static String encode(String value) {
    String text = URLEncoder.encode(value, StandardCharsets.UTF_8);
    for (List<String> x : List.of(List.of("+", "%20"), List.of("*", "%2A"))) {
      text = text.replace(x.get(0), x.get(1));
    }
    return text;
  }
}
