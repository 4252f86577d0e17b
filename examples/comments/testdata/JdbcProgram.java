import java.net.URI;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import javax.sql.DataSource;

/** One deposit with JDBC. */
public final class JdbcProgram {
  /** Returns the drivers' own sources. */
  static DataSource source() throws SQLException {
    URI url = URI.create(System.getenv("DATABASE_URL"));
    if (url.getScheme().equals("postgres")) {
      var source = new org.postgresql.ds.PGSimpleDataSource();
      source.setURL("jdbc:postgresql://" + url.getHost() + ":" + url.getPort() + url.getPath() + "?sslmode=disable");
      source.setUser(url.getUserInfo());
      return source;
    }
    return new org.mariadb.jdbc.MariaDbDataSource(
        "jdbc:mariadb://" + url.getHost() + ":" + url.getPort() + url.getPath() + "?user=" + url.getUserInfo());
  }

  public static void main(String[] args) throws Exception {
    DataSource source = SqlComments.wrap(source(), "JdbcProgram");
    SqlComments.action("accounts:deposit", () -> {
      try (Connection connection = source.getConnection()) {
        connection.setAutoCommit(false);
        int balance;
        try (var statement = connection.createStatement();
            ResultSet rows = statement.executeQuery("SELECT balance FROM account WHERE id = 1")) { // READ
          rows.next();
          balance = rows.getInt(1);
        }
        try (PreparedStatement update =
            connection.prepareStatement("UPDATE account SET balance = ? WHERE id = 1")) { // WRITE
          update.setInt(1, balance + 10);
          update.executeUpdate();
        }
        connection.commit();
      }
      return null;
    });
  }
}
