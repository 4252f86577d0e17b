import java.io.Serializable;
import javax.persistence.Entity;
import javax.persistence.Id;
import javax.persistence.Table;
import org.hibernate.Session;
import org.hibernate.Transaction;
import org.hibernate.cfg.Configuration;

/** One deposit with Hibernate. */
public final class HibernateProgram {
  /** A row. */
  @Entity
  @Table(name = "account")
  public static class Account implements Serializable {
    @Id public int id;
    public int balance;
  }

  public static void main(String[] args) throws Exception {
    var source = SqlComments.wrap(JdbcProgram.source(), "HibernateProgram");
    boolean postgres = System.getenv("DATABASE_URL").startsWith("postgres:");
    var factory = new Configuration().addAnnotatedClass(Account.class)
        .setProperty("hibernate.temp.use_jdbc_metadata_defaults", "false")
        .setProperty("hibernate.dialect", "org.hibernate.dialect." + (postgres ? "PostgreSQLDialect" : "MySQL5Dialect"))
        .buildSessionFactory();
    SqlComments.action("accounts:deposit", () -> {
      try (var connection = source.getConnection()) {
        connection.setAutoCommit(false);
        Session session = factory.openSession(connection);
        Transaction transaction = session.beginTransaction();
        Account account = (Account) session.get(Account.class, 1); // READ
        account.balance += 10;
        session.flush(); // WRITE
        transaction.commit();
        session.close();
      }
      return null;
    });
  }
}
